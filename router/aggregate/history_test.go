// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/router/aggregate/internal/splice"
)

// recorded is a history together with the state after each of its messages.
type recorded struct {
	history
	state  map[string]int // the version of each object
	states []map[string]int
	at     int // the version of the state
}

func newRecorded() *recorded {
	return &recorded{state: map[string]int{}, states: []map[string]int{{}}}
}

func stampOf(state map[string]int) uint64 {
	var sum uint64
	for name, version := range state {
		sum += splice.Fingerprint(7, map[string]any{"name": name, "version": int64(version)})
	}
	return splice.Stamp(sum, len(state))
}

func (r *recorded) message(n news) {
	if n.at != "" {
		n.stamp = stampOf(r.state)
	}
	r.add(n)
	r.states = append(r.states, maps.Clone(r.state))
}

// change records an event. An event of a repair has no version.
func (r *recorded) change(name string, present, repair bool) {
	kind := watch.Modified
	if present {
		r.state[name] = r.at
	} else {
		delete(r.state, name)
		kind = watch.Deleted
	}
	n := news{kind: kind, object: &observed{at: objectKey{name: name}}}
	if !repair {
		n.at = strconv.Itoa(r.at)
	}
	r.message(n)
}

// act makes a random step of a region's history.
func (r *recorded) act(t *rapid.T) {
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	switch rapid.IntRange(0, 6).Draw(t, "step") {
	case 0:
		r.at += rapid.IntRange(1, 3).Draw(t, "gap")
		r.message(news{kind: watch.Bookmark, at: strconv.Itoa(r.at)})
	case 1:
		r.message(news{state: Unreachable})
	case 2: // a repair, at a version that may be an earlier one
		r.at = max(1, r.at+rapid.IntRange(-4, 6).Draw(t, "to"))
		for range rapid.IntRange(0, 2).Draw(t, "differences") {
			r.change(names.Draw(t, "name"), rapid.Bool().Draw(t, "present"), true)
		}
		r.message(news{state: OK, at: strconv.Itoa(r.at)})
	default:
		r.at += rapid.IntRange(1, 3).Draw(t, "gap")
		r.change(names.Draw(t, "name"), rapid.Bool().Draw(t, "present"), false)
	}
}

// A consumer continues at the message that find returns. It has the state before this message.
func TestHistoryFindsTheStateOfAConsumer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRecorded()
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			r.act(t)
		}
		has := rapid.IntRange(0, len(r.states)-1).Draw(t, "consumer")
		rv := strconv.Itoa(rapid.IntRange(0, r.at+3).Draw(t, "version"))
		next, ok := r.find(rv, stampOf(r.states[has]))
		if ok {
			require.Equal(t, r.states[has], r.states[next])
		}
		if has > 0 && r.kept[has-1].at != "" {
			require.True(t, ok, "the state is that after a message")
		}
	})
}

// Without a stamp, the version decides: in a history without restores, the consumer gets exactly the later changes.
func TestHistoryFindsAVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRecorded()
		var versions []int // of the changes
		repaired := 0      // the version of the last repair with changes that have no version
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			before := r.at
			r.at += rapid.IntRange(1, 3).Draw(t, "gap")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				r.message(news{kind: watch.Bookmark, at: strconv.Itoa(r.at)})
			case 1:
				r.change("a", true, true)
				versions, repaired = append(versions, before+1), r.at
				r.message(news{state: OK, at: strconv.Itoa(r.at)})
			default:
				r.change("a", true, false)
				versions = append(versions, r.at)
			}
		}
		at := rapid.IntRange(1, r.at).Draw(t, "version")
		next, ok := r.find(strconv.Itoa(at), 0)
		if at >= repaired && at >= firstVersion(r) {
			require.True(t, ok)
		}
		if !ok {
			return
		}
		later := 0
		for _, n := range r.kept[next:] {
			if n.object != nil {
				later++
			}
		}
		want := 0
		for _, version := range versions {
			if version > at {
				want++
			}
		}
		require.Equal(t, want, later)
	})
}

// firstVersion returns the first version of a history.
func firstVersion(r *recorded) int {
	for _, n := range r.kept {
		if v, ok := number(n.at); ok {
			return int(v)
		}
	}
	return 0
}

// A history forgets its oldest messages, and says so. It always has the latest one.
func TestHistoryIsBounded(t *testing.T) {
	h := &history{}
	reader := splice.Reader{}
	big, err := reader.List([]byte(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"},"data":{"x":"` + strings.Repeat("0", historyBytes/4) + `"}}]}`))
	require.NoError(t, err)
	for range 10 {
		h.add(news{kind: watch.Modified, at: "1", object: observedJSON(big.Objects[0].Compact())})
		require.NotEmpty(t, h.kept)
		require.LessOrEqual(t, h.bytes, int64(historyBytes))
	}
	_, ok := h.after(0)
	require.False(t, ok)
	messages, ok := h.after(h.next() - 1)
	require.True(t, ok)
	require.Len(t, messages, 1)
	_, ok = h.after(h.next() + 1)
	require.False(t, ok)
	for range 2 * historyMessages {
		h.add(news{state: Unreachable})
	}
	require.Len(t, h.kept, historyMessages)
	require.Zero(t, h.bytes)
}
