// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlotsOfOneAccountDoNotTakeThoseOfAnother(t *testing.T) {
	t.Parallel()
	var queued []string
	s := newSlots(2, func(key string) { queued = append(queued, key) })
	require.True(t, s.take("a", "a/1"))
	require.True(t, s.take("a", "a/2"))
	require.False(t, s.take("a", "a/3"))
	require.False(t, s.take("a", "a/3"))
	require.False(t, s.take("a", "a/4"))
	require.True(t, s.take("b", "b/1"))
	s.give("a")
	require.Equal(t, []string{"a/3"}, queued)
	require.False(t, s.take("a", "a/5"), "the free slot belongs to the key that waited")
	require.True(t, s.take("a", "a/3"))
	s.give("a")
	require.Equal(t, []string{"a/3", "a/4"}, queued)
}

func TestAGrantedSlotThatIsNotTakenGoesOn(t *testing.T) {
	t.Parallel()
	var queued []string
	s := newSlots(1, func(key string) { queued = append(queued, key) })
	require.True(t, s.take("a", "a/1"))
	require.False(t, s.take("a", "a/2"))
	require.False(t, s.take("a", "a/3"))
	s.give("a")
	s.renounce("a", "a/2") // the object is gone meanwhile
	s.renounce("a", "a/2")
	require.Equal(t, []string{"a/2", "a/3"}, queued)
	require.True(t, s.take("a", "a/3"))
	s.give("a")
	require.Empty(t, s.used)
	require.Empty(t, s.waiting)
	require.Empty(t, s.granted)
}

// TestNoKeyIsForgottenByTheSlots works on keys in random order, some of which vanish while they wait.
func TestNoKeyIsForgottenByTheSlots(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		var queue []string
		s := newSlots(1+random.IntN(3), func(key string) { queue = append(queue, key) })
		left := map[string]bool{}
		for i := range 20 {
			key := fmt.Sprint("a/", i)
			queue, left[key] = append(queue, key), true
		}
		running := 0
		for len(queue) > 0 || running > 0 {
			if len(queue) == 0 || running > 0 && random.IntN(3) == 0 {
				running--
				s.give("a")
				continue
			}
			i := random.IntN(len(queue))
			key := queue[i]
			queue = append(queue[:i], queue[i+1:]...)
			switch {
			case random.IntN(5) == 0:
				delete(left, key)
				s.renounce("a", key)
			case s.take("a", key):
				delete(left, key)
				running++
			}
			require.LessOrEqual(t, running, s.most)
		}
		require.Empty(t, left, "seed %d", seed)
		require.Empty(t, s.used)
	}
}
