// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

// observation watches one peer while it is engaged.
type observation struct {
	conn          *region.Conn
	claims        *loop.Objects
	carriers      *loop.Objects
	server        atomic.Pointer[masterv1alpha1.VersionInfo] // of the API server
	rereadVersion chan struct{}                              // makes run read the version again
}

// newObservation makes an observation that calls changed after each change of the observed state.
func newObservation(conn *region.Conn, changed func()) *observation {
	tell := func(types.NamespacedName) { changed() }
	o := &observation{
		conn: conn, rereadVersion: make(chan struct{}, 1),
		carriers: loop.NewObjects(conn.Dynamic(), carrierResource, loop.ObjectsOptions{Strip: stripCarrier, Changed: tell, Flows: changed}),
	}
	strip := func(claim *unstructured.Unstructured) {
		before, _ := o.claims.Get(loop.KeyOf(claim))
		stripClaim(claim, before, !synced(o.claims))
	}
	o.claims = loop.NewObjects(conn.Dynamic(), claimResource, loop.ObjectsOptions{Strip: strip, Changed: tell, Flows: changed})
	return o
}

// run keeps the caches and the version of the API server current until ctx ends.
func (o *observation) run(ctx context.Context, changed func()) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = o.claims.Start(ctx) })
	wg.Go(func() { _ = o.carriers.Start(ctx) })
	fresh := backoff.Doubling(time.Second, time.Minute)
	for delays := fresh; ; {
		v, err := serverVersion(ctx, o.conn)
		var retry <-chan time.Time
		if err == nil {
			if before := o.server.Swap(&v); before == nil || *before != v {
				changed()
			}
			delays = fresh
		} else {
			retry = time.After(delays.Step())
		}
		select {
		case <-o.rereadVersion:
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

// renew reads the API server's version again: it may have been upgraded while it was unreachable.
func (o *observation) renew() {
	select {
	case o.rereadVersion <- struct{}{}:
	default:
	}
}

func synced(o *loop.Objects) bool {
	select {
	case <-o.Synced():
		return true
	default:
		return false
	}
}

// fill adds the observed state to f.
func (o *observation) fill(f *findings) {
	for _, objects := range []*loop.Objects{o.carriers, o.claims} {
		if err := objects.Err(); isMissing(err) && f.missing == nil {
			f.missing = err
		}
	}
	if synced(o.claims) {
		f.known, f.bound, f.unsure = true, bound(o.claims.List()), inPhase(o.claims.List(), overwritten)
	}
	if server := o.server.Load(); server != nil {
		f.version = *server
	}
	if !synced(o.carriers) {
		f.version = masterv1alpha1.VersionInfo{}
		return
	}
	f.looked = true
	for _, carrier := range o.carriers.List() {
		f.master = f.master || isMaster(carrier)
		if v := carrier.GetLabels()[versionLabel]; v != "" {
			f.version = masterv1alpha1.VersionInfo{Version: v}
		}
	}
}

// bound returns the regions whose claims are Bound, sorted by provider and name. It skips guards and reservations of
// the fan-out protocol. It does not depend on the role of a claim: a claim that was moved to this peer keeps the role
// of its creation.
func bound(claims []*unstructured.Unstructured) []region.Key {
	return inPhase(claims, string(regionv1alpha1.RegionClaimBound))
}

func inPhase(claims []*unstructured.Unstructured, wanted string) []region.Key {
	var keys []region.Key
	for _, claim := range claims {
		phase, _, _ := unstructured.NestedString(claim.Object, "status", "phase")
		stage, _, _ := unstructured.NestedString(claim.Object, "spec", "fanout", "stage")
		committed := stage == "" || stage == string(fanoutv1alpha1.StageConfigured)
		key := region.Key{Provider: claim.GetNamespace(), Name: claim.GetName()}
		if phase != wanted || !committed || key.Validate() != nil {
			continue
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, region.Key.Compare)
	return keys
}

// overwritten replaces a phase that another client had written before the claims were first listed.
const overwritten = "Overwritten"

// stripClaim reduces a RegionClaim to the fields that the func bound reads. A phase counts only if an arbiter wrote it,
// so that no other client of the status moves a region. Otherwise the phase of the same claim in the cache stays. If
// the cache has no such claim, a phase that another client wrote becomes Overwritten if the claims are listed for the
// first time; otherwise stripClaim removes the phase.
func stripClaim(obj, before *unstructured.Unstructured, first bool) {
	kept, phase := bare(obj), ""
	switch {
	case slices.Contains(loop.StatusManagers(obj, "phase"), regionv1alpha1.RegionClaimManager):
		phase, _, _ = unstructured.NestedString(obj.Object, "status", "phase")
	case before != nil && before.GetUID() == obj.GetUID():
		phase, _, _ = unstructured.NestedString(before.Object, "status", "phase")
	case first:
		if _, there, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "phase"); there {
			phase = overwritten
		}
	}
	stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
	// Errors are impossible: the maps were created here.
	if phase != "" {
		_ = unstructured.SetNestedField(kept.Object, phase, "status", "phase")
	}
	if stage != "" {
		_ = unstructured.SetNestedField(kept.Object, stage, "spec", "fanout", "stage")
	}
	obj.Object = kept.Object
}

// stripCarrier reduces a KubeCarrier to the fields that fill reads.
func stripCarrier(obj *unstructured.Unstructured) {
	kept := bare(obj)
	kept.SetLabels(obj.GetLabels())
	_ = unstructured.SetNestedField(kept.Object, isMaster(obj), "spec", "master") // no error: bare made the map
	obj.Object = kept.Object
}

func bare(obj *unstructured.Unstructured) *unstructured.Unstructured {
	kept := &unstructured.Unstructured{Object: map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind()}}
	kept.SetNamespace(obj.GetNamespace())
	kept.SetName(obj.GetName())
	kept.SetUID(obj.GetUID())
	kept.SetResourceVersion(obj.GetResourceVersion())
	return kept
}
