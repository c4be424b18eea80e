// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// inEffect fails the test unless the Accounts are in effect in every peer.
func (w *world) inEffect(names ...string) {
	w.t.Helper()
	for _, name := range names {
		for _, p := range peerNames {
			require.NotNil(w.t, w.held(p, name), "%s in %s", name, p)
		}
	}
}

// release releases the held deletion of a central Account.
func (w *world) release(name string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fanoutv1alpha1.ReleaseRemovalAnnotation, get(w.t, w.api, resource, "", name).GetUID())
	_, err := w.api.Dynamic().Resource(resource).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

func TestTheDeletionOfAllCentralAccountsIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, Options{RemovalCap: fanout.RemovalCap{Within: 10 * time.Second}})
		var names []string
		for i := range 8 {
			names = append(names, fmt.Sprintf("acme-%d", i))
			w.create(newAccount(names[i], []any{"Tenant"}))
		}
		time.Sleep(time.Minute)
		w.inEffect(names...)
		// The deletions come one by one, as from a tool.
		for _, name := range names {
			w.delete(name)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		w.inEffect(names...)
		for _, name := range names {
			c := condition(accountIn(t, w.api, name).Status, ConditionRemovalHeld)
			require.Equal(t, metav1.ConditionTrue, c.Status, name)
			require.Equal(t, "TooMany", c.Reason)
		}
		for _, s := range w.servers() {
			s.Reset()
		}
		time.Sleep(time.Hour)
		for _, s := range w.servers() {
			require.Zero(t, writesTo(s))
		}

		// Another replica of the program also holds these removals, and performs only those that are
		// released.
		w.stop()
		w.r, _ = NewReplicator(w.api, w.ring, slow(t, w.ring), Options{})
		run(t, w.r.Start)
		time.Sleep(time.Minute)
		w.inEffect(names...)
		for _, name := range names[:6] {
			w.release(name)
		}
		time.Sleep(5 * time.Minute)
		for _, name := range names[:6] {
			w.awaitGone(name)
		}
		w.inEffect(names[6:]...)
	})
}

func TestTheDeletionOfACentralAccountIsHeldWhileAPeerIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}))
		time.Sleep(time.Minute)
		w.inEffect("acme")
		away := w.away("acme")
		w.ring.Partition(away, true)
		time.Sleep(time.Minute)
		w.delete("acme")
		time.Sleep(time.Minute)
		for _, p := range peerNames {
			if p != away {
				require.NotNil(t, w.held(p, "acme"), p)
			}
		}
		c := condition(accountIn(t, w.api, "acme").Status, ConditionRemovalHeld)
		require.Equal(t, "Unknown", c.Reason)
		require.Contains(t, c.Message, string(away))
		w.ring.Partition(away, false)
		time.Sleep(5 * time.Minute)
		w.awaitGone("acme")
	})
}
