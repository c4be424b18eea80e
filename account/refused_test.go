// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// A peer has lost its PeerSet, so each add of an Account is aborted. The Replicator tries again
// after pauses that grow to a minute. Events of an aborted attempt do not end a pause, but a change
// of the Account does. When the PeerSet is restored, the Account is added.
func TestReplicatorPausesAfterAnAbortedAdd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, Options{})
		time.Sleep(time.Minute)
		sets := w.conn("us-east").Dynamic().Resource(peerSetsResource)
		set, err := sets.Get(t.Context(), "default", metav1.GetOptions{})
		require.NoError(t, err)
		deleteIn(t, w.conn("us-east"), peerSetsResource, "", "default")
		eu := w.ring.Server("eu-west")
		eu.Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Delay(100 * time.Millisecond)})
		attempts := func() int {
			n := 0
			for _, r := range eu.Requests() {
				if r.Verb == "create" && r.Resource == resource.Resource {
					n++
				}
			}
			return n
		}
		w.create(newAccount("acme", []any{"Tenant"}))
		time.Sleep(10 * time.Second)
		require.Positive(t, attempts())
		before := attempts()
		require.LessOrEqual(t, before, 4)
		written := get(t, w.api, resource, "", "acme").GetResourceVersion()
		time.Sleep(30 * time.Minute)
		require.InDelta(t, before+30, attempts(), 5)
		require.Equal(t, written, get(t, w.api, resource, "", "acme").GetResourceVersion(), "attempts that fail for the same reason change no status")

		before = attempts()
		w.edit(w.api, "acme", func(o *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedStringSlice(o.Object, []string{"Provider"}, "spec", "roles"))
		})
		time.Sleep(time.Second)
		require.Equal(t, before+1, attempts())

		set.SetUID("")
		set.SetResourceVersion("")
		_, err = sets.Create(t.Context(), set, metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(slowest + 10*time.Second)
		w.awaitReady("acme")
	})
}
