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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// If both sides change while no syncer runs, fields that the upstream has are overwritten downstream and reported.
// Fields that only the downstream object has stay.
func TestBothSidesChanged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {both: v, up: v, down: v}}")
		p.rest()
		p.stop()
		p.up.patch(configMaps, "a", `{"data":{"both":"up","up":"up"}}`)
		p.down.patch(configMaps, "a", `{"data":{"both":"down","down":"down","theirs":"down"}}`)
		p.start(syncer.Options{})
		p.rest()
		require.Equal(t, map[string]any{"both": "up", "up": "up", "down": "v", "theirs": "down"}, field(p.down.get(configMaps, "a"), "data"))
		require.Equal(t, map[string]any{"both": "up", "up": "up", "down": "v"}, field(p.up.get(configMaps, "a"), "data"))
		require.ElementsMatch(t, []string{`.data.both: conflict with "somebody" using v1`, `.data.down: conflict with "somebody" using v1`}, p.overruled)
	})
}

// An object is created although the creation of its namespace fails twice, with any of these codes.
func TestNamespaceWhoseCreationFails(t *testing.T) {
	for _, code := range []int{http.StatusGatewayTimeout, http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusConflict} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{})
				p.down.Inject(regiontest.Fault{Verb: "create", Resource: namespaces.GroupResource(), Times: 2, Do: regiontest.Refuse(code)})
				p.up.create(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
				p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}")
				p.rest()
				p.rest()
				require.NotNil(t, p.down.get(configMaps, "a", "shop"))
				require.Empty(t, p.problems())
			})
		})
	}
}

// An object that is too large for the downstream is reported, and other objects are synced.
func TestTooLarge(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.down.Inject(regiontest.Fault{Verb: "patch", Resource: configMaps.GroupResource(), Name: "large", Times: -1, Do: regiontest.Refuse(http.StatusRequestEntityTooLarge)})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: large}}")
		p.up.create(configMaps, a)
		time.Sleep(5 * time.Minute)
		require.NotNil(t, p.down.get(configMaps, "a"))
		require.Equal(t, []string{"configmaps default/large Refused"}, p.problems())
	})
}

// Metadata that the upstream server writes by itself is not copied to the downstream object. An object that is deleted
// upstream stays there until its downstream object is gone.
func TestServerFieldsDoNotCross(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.stop()
		p.up.create(deployments, deployment)
		for i := range 5 {
			p.up.patch(deployments, "web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, i))
		}
		p.start(syncer.Options{})
		up, down := p.up.get(deployments, "web"), p.down.get(deployments, "web")
		require.NotEqual(t, up.GetUID(), down.GetUID())
		require.NotEqual(t, up.GetGeneration(), down.GetGeneration())
		require.Empty(t, down.GetSelfLink())
		require.Len(t, down.GetManagedFields(), 1)
		p.down.patch(deployments, "web", `{"metadata":{"finalizers":["example.org/theirs"]}}`)
		p.up.delete(deployments, "web")
		p.rest()
		require.NotNil(t, p.up.get(deployments, "web").GetDeletionTimestamp())
		p.down.patch(deployments, "web", `{"metadata":{"finalizers":null}}`)
		p.rest()
		require.Nil(t, p.up.get(deployments, "web"))
	})
}

// Labels, annotations and fields that are removed upstream are removed downstream, also if no syncer ran at that time.
// Those that other clients added downstream stay.
func TestWhatOthersAddStays(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {workloads.kcp.io/cluster: my-cluster, tier: front, color: blue}, annotations: {note: here, tip: there}}, data: {k: v, l: v, m: v}}")
		p.rest()
		parent := p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: parent, labels: {theirs: 'yes'}}}")
		p.down.patch(configMaps, "a", `{"metadata":{"labels":{"theirs":"yes"},"annotations":{"theirs":"yes"},"finalizers":["example.org/theirs"],
			"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"parent","uid":"`+string(parent.GetUID())+`"}]},"data":{"theirs":"yes"}}`)
		p.up.patch(configMaps, "a", `{"metadata":{"labels":{"color":null,"tier":"back"},"annotations":{"tip":null}},"data":{"l":null,"k":"w"}}`)
		p.rest()
		has := func(labels, annotations map[string]string, data map[string]any) {
			t.Helper()
			down := p.down.get(configMaps, "a")
			ours := down.GetAnnotations()
			for _, ledger := range []string{"applied", "origin", "uid"} {
				delete(ours, "syncer.atoll.dev/"+ledger)
			}
			labels["theirs"], annotations["theirs"], data["theirs"] = "yes", "yes", "yes"
			labels["syncer.atoll.dev/owner"] = p.Status().Owner
			require.Equal(t, labels, down.GetLabels())
			require.Equal(t, annotations, ours)
			require.Equal(t, data, field(down, "data"))
			require.Equal(t, []string{"example.org/theirs"}, down.GetFinalizers())
			require.Len(t, down.GetOwnerReferences(), 1)
			require.Empty(t, p.up.get(configMaps, "a").GetOwnerReferences())
		}
		has(map[string]string{"tier": "back"}, map[string]string{"note": "here"}, map[string]any{"k": "w", "m": "v"})
		p.stop()
		p.up.patch(configMaps, "a", `{"metadata":{"labels":{"tier":null},"annotations":{"note":null}},"data":{"m":null}}`)
		p.start(syncer.Options{})
		p.rest()
		has(map[string]string{}, map[string]string{}, map[string]any{"k": "w"})
	})
}

// A NotFound of the status subresource does not mean that the object was deleted.
func TestNoPlaceForTheStatus(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}")
		p.rest()
		p.reset()
		p.up.Inject(regiontest.Fault{Verb: "patch", Resource: widgets.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusNotFound)})
		p.down.patch(widgets, "a", `{"status":{"ready":true}}`, "status")
		time.Sleep(10 * time.Minute)
		tried := slices.Compact(p.up.writes())
		require.Equal(t, []string{"patch widgets/status a"}, tried)
		require.Less(t, len(p.up.writes()), 30, "retries have a backoff")
		require.Equal(t, []string{"patch widgets/status a"}, p.down.writes(), "only the test's write")
		require.Equal(t, []string{"syncer.atoll.dev/my-cluster"}, p.up.get(widgets, "a").GetFinalizers())
		p.up.Reset()
		time.Sleep(2 * time.Minute)
		require.Equal(t, true, field(p.up.get(widgets, "a"), "status", "ready"))
	})
}

// The syncer reconciles an object that has just changed before the objects that a long list has queued.
func TestFreshWorkComesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.numbered(100)
		p.rest()
		p.stop()
		for i := range 100 {
			p.up.patch(configMaps, fmt.Sprintf("c-%03d", i), `{"data":{"k":"w"}}`)
		}
		p.down.Inject(regiontest.Fault{Verb: "patch", Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Delay(time.Second)})
		s, err := syncer.New(p.up.api, p.down.api, syncer.Options{Target: target, Workers: 1, Types: only(configMaps.GroupResource())})
		require.NoError(t, err)
		stop := run(t, s)
		time.Sleep(10500 * time.Millisecond)
		p.up.create(configMaps, a)
		time.Sleep(3 * time.Second)
		require.NotNil(t, p.down.get(configMaps, "a"))
		time.Sleep(5 * time.Minute)
		require.Equal(t, "w", field(p.down.get(configMaps, "c-099"), "data", "k"))
		stop()
	})
}

// only returns a filter that selects one type.
func only(one schema.GroupResource) syncer.TypeFilter {
	return func(gr schema.GroupResource) bool { return gr == one }
}
