// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// meanwhile delays the next deletion of a ConfigMap on one side. It calls the func do, which makes the syncer send
// this deletion, and calls the func change while the deletion is delayed.
func (p *pair) meanwhile(on *side, change, do func()) {
	p.t.Helper()
	on.Inject(regiontest.Fault{Verb: "delete", Resource: configMaps.GroupResource(), Do: regiontest.Delay(20 * time.Second)})
	do()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	change()
	p.rest()
	p.rest()
}

// deletions returns the response codes of the deletions of ConfigMaps.
func (s *side) deletions() (codes []int) {
	for _, r := range s.Requests() {
		if r.Verb == "delete" && r.Resource == configMaps.Resource {
			codes = append(codes, r.Code)
		}
	}
	return codes
}

// If an object changes upstream after the syncer has decided to delete it, the deletion fails with a Conflict.
func TestAnUpstreamDeletionMeetsAChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{OnDownstreamDelete: syncer.DeleteUpstream})
		p.up.create(configMaps, a)
		p.rest()
		p.meanwhile(p.up, func() { p.up.patch(configMaps, "a", `{"data":{"k":"changed"}}`) }, func() { p.down.delete(configMaps, "a") })
		require.NotEmpty(t, p.up.deletions())
		require.Equal(t, http.StatusConflict, p.up.deletions()[0])
	})
}

// If another client replaces an object that Upsync created while the syncer's deletion of it is under way, the new
// object stays.
func TestAnObjectThatReplacedOneThatWasBroughtUpStays(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, upsyncAll)
		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: born, labels: {state.workload.kcp.io/my-cluster: Upsync}}}")
		p.rest()
		require.NotNil(t, p.up.get(configMaps, "born"))
		p.meanwhile(p.up, func() {
			p.up.delete(configMaps, "born")
			p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: born, labels: {theirs: 'yes'}}}")
		}, func() { p.down.delete(configMaps, "born") })
		require.NotNil(t, p.up.get(configMaps, "born"))
		require.Equal(t, "yes", p.up.get(configMaps, "born").GetLabels()["theirs"])
	})
}

// patches returns the response codes of the patches of a ConfigMap.
func (s *side) patches(name string) (codes []int) {
	for _, r := range s.Requests() {
		if r.Verb == "patch" && r.Resource == configMaps.Resource && r.Name == name {
			codes = append(codes, r.Code)
		}
	}
	return codes
}

// If other clients add finalizers while the syncer adds or removes its own, their finalizers stay.
func TestFinalizersThatOthersAddMeanwhileStay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		late := func(skip int) {
			p.up.Inject(regiontest.Fault{Verb: "patch", Resource: configMaps.GroupResource(), Name: "a", Skip: skip, Do: regiontest.Delay(20 * time.Second)})
		}
		late(0)
		p.up.create(configMaps, a)
		time.Sleep(10 * time.Second)
		p.up.patch(configMaps, "a", `{"metadata":{"finalizers":["example.org/late"]}}`)
		p.rest()
		p.rest()
		require.ElementsMatch(t, []string{"example.org/late", "syncer.atoll.dev/my-cluster"}, p.up.get(configMaps, "a").GetFinalizers())
		// Without a conflict, a later write by an older state of the cache may restore the finalizer.
		require.Equal(t, http.StatusConflict, p.up.patches("a")[0])
		before := len(p.up.patches("a"))

		late(1)
		p.up.patch(configMaps, "a", `{"metadata":{"labels":{"workloads.kcp.io/cluster":null}}}`)
		time.Sleep(10 * time.Second)
		p.up.patch(configMaps, "a", `{"metadata":{"finalizers":["example.org/late","syncer.atoll.dev/my-cluster","example.org/later"]}}`)
		p.rest()
		p.rest()
		require.Equal(t, []string{"example.org/late", "example.org/later"}, p.up.get(configMaps, "a").GetFinalizers())
		require.Equal(t, http.StatusConflict, p.up.patches("a")[before+1], "the patch after that of the label")
	})
}

// If another client replaces a downstream object while the syncer's update of it is under way, the new object does not
// get the update.
func TestAnUpdateReachesOnlyTheObjectItIsFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, a)
		p.rest()
		p.down.Inject(regiontest.Fault{Verb: "patch", Resource: configMaps.GroupResource(), Name: "a", Do: regiontest.Delay(20 * time.Second)})
		p.up.patch(configMaps, "a", `{"data":{"k":"changed"}}`)
		time.Sleep(10 * time.Second)
		p.down.delete(configMaps, "a")
		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: 'yes'}}}")
		p.rest()
		p.rest()
		require.Equal(t, map[string]string{"theirs": "yes"}, p.down.get(configMaps, "a").GetLabels())
		require.NotContains(t, p.down.get(configMaps, "a").Object, "data")
	})
}

// If an upstream object is replaced while the syncer's write of its status is under way, the new object does not get
// the status.
func TestAStatusReachesOnlyTheObjectItIsFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}")
		p.rest()
		p.up.Inject(regiontest.Fault{Verb: "patch", Resource: widgets.GroupResource(), Name: "a", Do: regiontest.Delay(20 * time.Second)})
		p.down.patch(widgets, "a", `{"status":{"phase":"Ready"}}`, "status")
		time.Sleep(10 * time.Second)
		p.up.patch(widgets, "a", `{"metadata":{"finalizers":null}}`)
		p.up.delete(widgets, "a")
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 2}}")
		p.rest()
		p.rest()
		require.NotContains(t, p.up.get(widgets, "a").Object, "status")
	})
}
