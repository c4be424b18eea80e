// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// With DeleteUpstream, the syncer deletes the origin of a downstream object that another client deletes, but only on
// evidence of this deletion.
func TestDeletedDownstream(t *testing.T) {
	policy := syncer.Options{OnDownstreamDelete: syncer.DeleteUpstream}
	t.Run("goes upstream", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, policy)
			p.up.create(configMaps, a)
			p.rest()
			p.down.delete(configMaps, "a")
			p.rest()
			require.Nil(t, p.up.get(configMaps, "a"))
			require.Nil(t, p.down.get(configMaps, "a"))
			require.Empty(t, p.problems())
		})
	})
	t.Run("while the watch was broken", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, policy)
			p.up.create(configMaps, a)
			p.rest()
			p.down.Partition(true)
			time.Sleep(time.Minute)
			require.NotNil(t, p.up.get(configMaps, "a"), "an unreachable downstream is no evidence of a deletion")
			p.down.Partition(false)
			p.down.Inject(regiontest.Fault{Verb: "list", Resource: configMaps.GroupResource(), Times: 3, Do: regiontest.Refuse(503)})
			p.down.delete(configMaps, "a")
			time.Sleep(2 * time.Minute)
			require.Nil(t, p.up.get(configMaps, "a"))
		})
	})
	t.Run("while nobody watched", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, policy)
			p.up.create(configMaps, a)
			p.rest()
			p.stop()
			p.down.delete(configMaps, "a")
			p.start(policy)
			p.rest()
			require.NotNil(t, p.down.get(configMaps, "a"), "the downstream object may never have been created")
			require.NotNil(t, p.up.get(configMaps, "a"))
		})
	})
	t.Run("replaced by something else", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, policy)
			p.up.create(configMaps, a)
			p.rest()
			p.down.Inject(regiontest.Fault{Verb: "get", Resource: configMaps.GroupResource(), Do: regiontest.Delay(time.Second)})
			p.down.delete(configMaps, "a")
			p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: 'yes'}}}")
			p.rest()
			require.NotNil(t, p.up.get(configMaps, "a"))
			require.Equal(t, []string{"configmaps default/a Foreign"}, p.problems())
		})
	})
	t.Run("made anew by us", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, policy)
			p.up.create(configMaps, a)
			p.rest()
			p.up.patch(configMaps, "a", `{"metadata":{"labels":{"workloads.kcp.io/cluster":"another"}}}`)
			p.rest()
			p.up.patch(configMaps, "a", `{"metadata":{"labels":{"workloads.kcp.io/cluster":"my-cluster"}}}`)
			p.rest()
			require.NotNil(t, p.up.get(configMaps, "a"))
			require.NotNil(t, p.down.get(configMaps, "a"))
		})
	})
	t.Run("of several clusters", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, policy)
			p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {state.workload.kcp.io/my-cluster: Sync, state.workload.kcp.io/two: Sync}}}")
			p.rest()
			p.down.delete(configMaps, "a")
			p.rest()
			require.NotNil(t, p.up.get(configMaps, "a"))
			require.NotNil(t, p.down.get(configMaps, "a"))
		})
	})
	t.Run("too many", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, policy)
			p.up.numbered(30)
			p.rest()
			for i := range 25 {
				p.down.delete(configMaps, fmt.Sprintf("c-%03d", i))
			}
			p.rest()
			require.Equal(t, 20, p.up.count())
			require.Len(t, p.problems(), 15)
			require.Equal(t, 15, p.Release())
			p.rest()
			p.rest()
			require.Equal(t, 5, p.up.count())
			require.Empty(t, p.problems())
		})
	})
	t.Run("held alone", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, syncer.Options{OnDownstreamDelete: syncer.DeleteUpstream, DeleteCap: syncer.DeleteCap{Objects: 1, Share: 0.1}})
			p.up.numbered(5)
			p.rest()
			for _, name := range []string{"c-000", "c-001"} {
				p.down.delete(configMaps, name)
				p.rest()
			}
			require.Equal(t, []string{"configmaps default/c-001 Held"}, p.problems())
			time.Sleep(2 * time.Minute)
			p.up.patch(configMaps, "c-001", `{"metadata":{"annotations":{"note":"here"}}}`)
			p.rest()
			require.NotNil(t, p.up.get(configMaps, "c-001"), "another reconcile does not release it")
			require.Equal(t, []string{"configmaps default/c-001 Held"}, p.problems())
			require.Equal(t, 1, p.Release())
			p.rest()
			require.Nil(t, p.up.get(configMaps, "c-001"))
		})
	})
	t.Run("another cluster answers", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			up, one, two := newSide(t, "up", regiontest.Options{}), newSide(t, "one", regiontest.Options{}), newSide(t, "two", regiontest.Options{})
			switching := switchedTo(one.api)
			p := &pair{t: t, up: up, down: one}
			s, err := syncer.New(up.api, switching, syncer.Options{Target: target, OnDownstreamDelete: syncer.DeleteUpstream})
			require.NoError(t, err)
			stop := run(t, s)
			up.create(configMaps, a)
			p.rest()
			switching.to(two.api)
			one.delete(configMaps, "a")
			time.Sleep(5 * time.Minute)
			require.NotNil(t, up.get(configMaps, "a"))
			stop()
		})
	})
}
