// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// leave removes the label of the target from a ConfigMap upstream.
func (p *pair) leave(name string) {
	p.t.Helper()
	p.up.patch(configMaps, name, `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
}

// The label of an object is removed while a cache is stale, and no cache has the object afterwards. The syncer still
// removes our finalizer from it.
func TestLeftWhileACopyWasNotFresh(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: 'yes'}}}")
		p.up.create(configMaps, a)
		p.rest()
		require.Equal(t, []string{"configmaps default/a Foreign"}, p.problems())
		p.down.Partition(true)
		time.Sleep(time.Minute)
		p.leave("a")
		time.Sleep(time.Minute)
		require.NotEmpty(t, p.up.get(configMaps, "a").GetFinalizers(), "nothing is written while a cache is stale")
		p.down.Partition(false)
		time.Sleep(time.Minute)
		require.Empty(t, p.up.get(configMaps, "a").GetFinalizers())
		require.Empty(t, p.problems())
	})
}

// The label of an object is removed while no syncer runs. The next syncer removes our finalizer once its caches are
// fresh.
func TestLeftBeforeACopyWasFresh(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: 'yes'}}}")
		p.up.create(configMaps, a)
		p.rest()
		p.stop()
		p.leave("a")
		p.down.Inject(regiontest.Fault{Verb: "watch", Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusInternalServerError)})
		p.start(syncer.Options{})
		time.Sleep(time.Minute)
		p.down.Reset()
		time.Sleep(time.Minute)
		require.Empty(t, p.up.get(configMaps, "a").GetFinalizers())
	})
}

// If a cache is stale when another client deletes an object downstream that Upsync would bring up, the report about
// that object still ends.
func TestBornWentWhileACopyWasNotFresh(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, upsyncAll)
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a, labels: {theirs: 'yes'}}}")
		p.down.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a, labels: {state.workload.kcp.io/my-cluster: Upsync}}}")
		p.rest()
		require.Equal(t, []string{"widgets default/a Foreign"}, p.problems())
		p.up.Partition(true)
		time.Sleep(time.Minute)
		p.down.delete(widgets, "a")
		time.Sleep(time.Minute)
		p.up.Partition(false)
		time.Sleep(time.Minute)
		require.Empty(t, p.problems())
		require.NotNil(t, p.up.get(widgets, "a"))
	})
}

// If a cache is stale when another client deletes a misplaced downstream object whose deletion is held, the report
// about that object still ends.
func TestStrayWentWhileACopyWasNotFresh(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		types := only(configMaps.GroupResource())
		p := newPair(t, syncer.Options{Types: types, Namespaces: syncer.PrefixNamespaces("old-")})
		p.up.numbered(3)
		p.rest()
		p.stop()
		p.start(syncer.Options{Types: types, Namespaces: syncer.PrefixNamespaces("new-"), DeleteCap: syncer.DeleteCap{Objects: 1, Share: 0.1}})
		require.Len(t, p.problems(), 2)
		p.up.Partition(true)
		time.Sleep(time.Minute)
		require.NoError(t, p.down.of(configMaps, "old-default").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		time.Sleep(time.Minute)
		p.up.Partition(false)
		time.Sleep(time.Minute)
		require.Empty(t, p.problems())
		at := slices.IndexFunc(p.Status().Types, func(s syncer.TypeStatus) bool { return s.Resource == configMaps })
		require.Zero(t, p.Status().Types[at].Held)
	})
}

// Several times, a cache becomes stale, and many objects change or lose their label meanwhile. Each time that the
// cache is fresh again, the syncer reads each object that lost its label exactly once, writes it exactly once, and
// writes no other object upstream.
func TestMuchWhileACopyWasNotFresh(t *testing.T) {
	const objects = 12
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		name := func(i int) string { return fmt.Sprintf("c-%03d", i) }
		for i := range objects {
			p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name(i)+", labels: {theirs: 'yes'}}}")
		}
		p.up.numbered(objects)
		p.rest()
		require.Len(t, p.problems(), objects)
		for round := range 3 {
			p.down.Partition(true)
			time.Sleep(time.Minute)
			for i := range objects {
				for turn := range 3 {
					p.up.patch(configMaps, name(i), fmt.Sprintf(`{"data":{"k":"%d-%d"}}`, round, turn))
				}
			}
			for i := range objects / 3 {
				p.leave(name(3*i + round))
			}
			time.Sleep(time.Minute)
			p.reset()
			p.down.Partition(false)
			time.Sleep(59 * time.Second)
			var asked []string
			for _, r := range p.up.Requests() {
				if r.Verb == "get" && r.Resource == configMaps.Resource {
					asked = append(asked, r.Name)
				}
			}
			require.Len(t, asked, objects/3)
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(asked))), objects/3)
			require.Len(t, p.up.writes(), objects/3, "one write for each object that left")
			require.Len(t, p.problems(), objects-(round+1)*objects/3)
		}
		p.reset()
		p.down.Partition(true)
		time.Sleep(time.Minute)
		p.down.Partition(false)
		time.Sleep(59 * time.Second)
		for _, r := range p.up.Requests() {
			require.False(t, r.Resource == configMaps.Resource && r.Verb != "list" && r.Verb != "watch", "no object has changed since: %+v", r)
		}
	})
}
