// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

var upsyncAll = syncer.Options{Upsync: func(schema.GroupResource) bool { return true }}

const born = `
apiVersion: example.org/v1
kind: Widget
metadata: {name: a, labels: {state.workload.kcp.io/my-cluster: Upsync, tier: front}, finalizers: [example.org/theirs]}
spec: {size: 1, gone: soon}
`

// With Upsync, the syncer creates an upstream object, with its status, for an object that was born downstream. The
// upstream object follows changes of the downstream object, and is deleted when the downstream object is gone.
func TestUpsync(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, upsyncAll)
		p.down.create(widgets, born)
		p.down.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: b, labels: {not: asked-for}}}")
		p.rest()
		require.Nil(t, p.up.get(widgets, "b"))
		up := p.up.get(widgets, "a")
		require.Equal(t, map[string]any{"size": int64(1), "gone": "soon"}, field(up, "spec"))
		require.Equal(t, map[string]string{"tier": "front", "syncer.atoll.dev/owner": p.Status().Owner}, up.GetLabels())
		require.Equal(t, "default/a", up.GetAnnotations()["syncer.atoll.dev/origin"])
		require.Empty(t, up.GetFinalizers())
		require.Equal(t, []string{"example.org/theirs"}, p.down.get(widgets, "a").GetFinalizers())

		p.reset()
		p.down.patch(widgets, "a", `{"spec":{"size":2,"gone":null}}`)
		p.rest()
		require.Equal(t, map[string]any{"size": int64(2)}, field(p.up.get(widgets, "a"), "spec"))
		require.Len(t, p.up.writes(), 1)
		p.reset()
		p.down.patch(widgets, "a", `{"status":{"observedGeneration":2,"ready":true}}`, "status")
		p.rest()
		up = p.up.get(widgets, "a")
		require.Equal(t, true, field(up, "status", "ready"))
		require.Equal(t, up.GetGeneration(), field(up, "status", "observedGeneration"))
		require.Equal(t, []string{"patch widgets/status a"}, p.up.writes())

		// The upstream object belongs to the downstream: the syncer reverts its change and its deletion by other
		// clients.
		p.up.patch(widgets, "a", `{"spec":{"size":9}}`)
		p.rest()
		require.EqualValues(t, 2, field(p.up.get(widgets, "a"), "spec", "size"))
		p.up.delete(widgets, "a")
		p.rest()
		require.EqualValues(t, 2, field(p.up.get(widgets, "a"), "spec", "size"))
		require.Equal(t, true, field(p.up.get(widgets, "a"), "status", "ready"))
		require.EqualValues(t, 2, field(p.down.get(widgets, "a"), "spec", "size"))

		p.stop()
		p.reset()
		require.Empty(t, p.diff(upsyncAll))
		p.start(upsyncAll)
		require.Empty(t, p.up.writes(), "a restart writes nothing")
		require.Empty(t, p.down.writes())

		p.down.delete(widgets, "a")
		p.rest()
		require.NotNil(t, p.up.get(widgets, "a"), "a finalizer still holds the object downstream")
		p.down.patch(widgets, "a", `{"metadata":{"finalizers":null}}`)
		p.rest()
		require.Nil(t, p.up.get(widgets, "a"))
		require.Empty(t, p.problems())
	})
}

// Without Options.Upsync nothing is created upstream.
func TestUpsyncIsOptional(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.down.create(widgets, born)
		p.rest()
		require.Nil(t, p.up.get(widgets, "a"))
		require.Empty(t, p.diff(syncer.Options{}))
		require.Len(t, p.diff(upsyncAll), 1)
	})
}

func TestUpsyncInOtherNamespaces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		opts := syncer.Options{Upsync: upsyncAll.Upsync, Namespaces: syncer.PrefixNamespaces("acme-")}
		p := newPair(t, opts)
		p.stop()
		for _, name := range []string{"acme-shop", "other"} {
			p.down.create(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
			p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: "+name+", labels: {state.workload.kcp.io/my-cluster: Upsync}}}")
		}
		require.Equal(t, []string{"configmaps shop Namespace", "configmaps shop/a Upsync"}, p.diff(opts))
		p.start(opts)
		require.NotNil(t, p.up.get(configMaps, "a", "shop"), "its namespace is created")
		require.Nil(t, p.up.get(configMaps, "a", "other"), "no namespace upstream maps to it")
		require.NoError(t, p.down.of(configMaps, "acme-shop").Delete(t.Context(), "a", metav1.DeleteOptions{}))
		p.rest()
		require.Nil(t, p.up.get(configMaps, "a", "shop"))
	})
}

// Upsync does not overwrite an object that another client has created upstream, and does not bring up a downstream
// object that the syncer created itself.
func TestUpsyncMeetsOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, upsyncAll)
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: 'yes'}}, data: {k: theirs}}")
		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {state.workload.kcp.io/my-cluster: Upsync}}, data: {k: v}}")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {k: v}}")
		p.rest()
		p.down.patch(configMaps, "b", `{"metadata":{"labels":{"state.workload.kcp.io/my-cluster":"Upsync"}}}`)
		p.rest()
		require.Equal(t, "theirs", field(p.up.get(configMaps, "a"), "data", "k"))
		require.Equal(t, []string{"configmaps default/a Foreign", "configmaps default/b NotSyncable"}, p.problems())
		p.up.delete(configMaps, "a")
		time.Sleep(2 * time.Minute)
		require.Equal(t, "v", field(p.up.get(configMaps, "a"), "data", "k"))
		require.Equal(t, []string{"configmaps default/b NotSyncable"}, p.problems())

		// When the downstream object loses its label, the upstream object is deleted.
		p.down.patch(configMaps, "a", `{"metadata":{"labels":{"state.workload.kcp.io/my-cluster":null}}}`)
		p.rest()
		require.Nil(t, p.up.get(configMaps, "a"))
		require.NotNil(t, p.down.get(configMaps, "a"))
	})
}

// Upsync deletes nothing upstream while the downstream is unreachable, or while another cluster answers. It holds
// the deletions if there are too many.
func TestUpsyncDeletesWithCare(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		up, one, two := newSide(t, "up", regiontest.Options{}), newSide(t, "one", regiontest.Options{}), newSide(t, "two", regiontest.Options{})
		switching := switchedTo(one.api)
		p := &pair{t: t, up: up, down: one}
		opts := upsyncAll
		opts.Target = target
		s, err := syncer.New(up.api, switching, opts)
		require.NoError(t, err)
		p.Syncer = s
		stop := run(t, s)
		for i := range 30 {
			one.create(configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%03d, labels: {state.workload.kcp.io/my-cluster: Upsync}}}", i))
		}
		p.rest()
		ours := func() (n int) {
			list, err := up.of(configMaps).List(t.Context(), metav1.ListOptions{LabelSelector: "syncer.atoll.dev/owner"})
			require.NoError(t, err)
			return len(list.Items)
		}
		require.Equal(t, 30, ours())
		one.Partition(true)
		time.Sleep(5 * time.Minute)
		require.Equal(t, 30, ours())
		one.Partition(false)
		time.Sleep(time.Minute)

		switching.to(two.api)
		one.delete(configMaps, "c-000")
		time.Sleep(time.Minute)
		require.Equal(t, 30, ours())
		switching.to(one.api)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 29, ours())

		for i := range 25 {
			one.delete(configMaps, fmt.Sprintf("c-%03d", i+1))
		}
		p.rest()
		require.GreaterOrEqual(t, ours(), 18)
		require.NotZero(t, p.Release())
		p.rest()
		require.Equal(t, 4, ours())
		require.Empty(t, p.problems())
		stop()
	})
}
