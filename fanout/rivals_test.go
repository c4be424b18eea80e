// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// Objects of one name are applied in several peers at once, and adopted there at once, again and again. Each adoption names
// the same rivals, and has the same Message, until only one object is left. It is adopted then.
func TestRivalsAppliedAtOnce(t *testing.T) {
	r := newRing(t)
	name := unique("acme")
	for _, p := range peers {
		apply(t, accountsIn(t, r, p), newAccount(name))
	}
	coordinators := map[region.PeerName]*fanout.Coordinator{}
	for _, p := range peers {
		coordinators[p] = coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	}
	adopt := func(left []region.PeerName) (messages map[string]bool) {
		var wg sync.WaitGroup
		errs := make([]error, len(left))
		for i, p := range left {
			wg.Go(func() { _, errs[i] = coordinators[p].Adopt(t.Context(), p, accounts, key("", name)) })
		}
		wg.Wait()
		messages = map[string]bool{}
		for _, err := range errs {
			messages[fanout.Message(err)] = true
			held, ok := errors.AsType[*fanout.HeldError](err)
			require.Equal(t, len(left) > 1, ok, "%v", err)
			if !ok {
				continue
			}
			require.Len(t, held.Rivals(), len(left))
			for i, rival := range held.Rivals() {
				require.Equal(t, left[i], rival.Peer)
				require.Equal(t, read(t, accountsIn(t, r, rival.Peer), name).GetUID(), rival.UID)
			}
		}
		return messages
	}
	for left := peers; ; left = left[1:] {
		for range 3 {
			messages := adopt(left)
			require.Len(t, messages, 1, "%v", messages)
			for message := range messages {
				require.Equal(t, len(left) == 1, message == "", message)
			}
		}
		if len(left) == 1 {
			break
		}
		require.NoError(t, accountsIn(t, r, left[0]).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	for _, c := range coordinators {
		requireClean(t, c)
	}
}

// An add that meets rivals names all of them, too. If one of them is committed, the error is about this one.
func TestAnAddMeetsRivals(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	name := unique("acme")
	apply(t, accountsIn(t, r, "ap-south"), newAccount(name))
	apply(t, accountsIn(t, r, "us-east"), newAccount(name))
	messages := map[string]bool{}
	for range 5 {
		_, err := c.Add(t.Context(), newAccount(name), fanout.AddOptions{})
		require.Equal(t, fanout.ReasonNameTaken, fanout.ReasonOf(err))
		require.ErrorContains(t, err, "kubectl delete accounts.catalog.kubecarrier.io "+name)
		messages[fanout.Message(err)] = true
	}
	require.Len(t, messages, 1, "%v", messages)

	require.NoError(t, accountsIn(t, r, "ap-south").Delete(t.Context(), name, metav1.DeleteOptions{}))
	_, err := c.Adopt(t.Context(), "us-east", accounts, key("", name))
	require.NoError(t, err)
	_, err = c.Add(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{})
	held, ok := errors.AsType[*fanout.HeldError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, region.PeerName("us-east"), held.Holder)
	require.Empty(t, held.Rivals())
}
