// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
)

// kind is a type that both sides serve, as the syncer needs it. It is comparable.
type kind struct {
	GVR        schema.GroupVersionResource
	Kind       string
	Namespaced bool
	// UpStatus and DownStatus say on which side status is a subresource.
	UpStatus, DownStatus bool
	// Refused says why objects of the type are only reported; empty: they are synced.
	Refused string
}

func (k kind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.GVR.Group, Kind: k.Kind}
}

// followTypes compares the types of both sides again and again until ctx ends, and runs a lane for each that both serve.
// It waits for the lanes.
func (s *Syncer) followTypes(ctx context.Context) {
	var lanes sync.WaitGroup
	defer lanes.Wait()
	schemas := &schemaComparer{up: s.up.Discovery().OpenAPIV3(), down: s.down.Discovery().OpenAPIV3(), known: map[schema.GroupVersion]comparedGroup{}}
	for ctx.Err() == nil {
		wanted, unsynced, err := s.compareTypes()
		if err != nil {
			logging.From(ctx).Info("Types are not known", "reason", err.Error())
		} else {
			s.setTypes(ctx, &lanes, wanted, unsynced)
			s.compareSchemas(ctx, schemas)
		}
		s.watchOthers(ctx)
		pause := s.opts.Discovery
		if err != nil {
			pause = min(pause, time.Second)
		}
		select {
		case <-time.After(pause + rand.N(pause/5+1)):
		case <-ctx.Done():
		}
	}
}

// setTypes starts and stops lanes. A lane that is stopped leaves its objects as they are.
func (s *Syncer) setTypes(ctx context.Context, running *sync.WaitGroup, wanted map[string]kind, unsynced map[schema.GroupVersionResource]Reason) {
	var stopped, begun []*lane
	s.mu.Lock()
	s.unsynced = unsynced
	for name, l := range s.lanes {
		if k, ok := wanted[name]; !ok || k != l.kind {
			delete(s.lanes, name)
			stopped = append(stopped, l)
		}
	}
	for name, k := range wanted {
		if s.lanes[name] == nil {
			l := newLane(s, name, k)
			s.lanes[name] = l
			begun = append(begun, l)
		}
	}
	s.mu.Unlock()
	for _, l := range stopped {
		l.stop()
		if l.kind.Refused == "" {
			s.opts.Observer.kind(ctx, TypeEvent{Resource: l.kind.GVR})
		}
	}
	for _, l := range begun {
		laneCtx, cancel := context.WithCancel(ctx)
		l.stop = cancel
		running.Go(func() { l.run(laneCtx) })
		if l.kind.Refused == "" {
			s.opts.Observer.kind(ctx, TypeEvent{Resource: l.kind.GVR, Synced: true})
		}
	}
}

// compareTypes asks both sides what they serve.
func (s *Syncer) compareTypes() (map[string]kind, map[schema.GroupVersionResource]Reason, error) {
	up, err := served(s.up.Discovery())
	if err != nil {
		return nil, nil, err
	}
	down, err := served(s.down.Discovery())
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	present := map[string]kind{}
	for name, l := range s.lanes {
		present[name] = l.kind
	}
	s.mu.Unlock()
	wanted, unsynced := s.matchTypes(up, down)
	for name, k := range present {
		if !up.unknown(k.GVR.Group) && !down.unknown(k.GVR.Group) {
			continue
		}
		// What could not be asked about is not gone, and its other versions are not preferred to it now.
		wanted[name] = k
		maps.DeleteFunc(unsynced, func(gvr schema.GroupVersionResource, _ Reason) bool {
			return gvr.GroupResource() == k.GVR.GroupResource()
		})
	}
	return wanted, unsynced, nil
}

var (
	verbsUp   = []string{"get", "list", "watch", "patch"}
	verbsDown = []string{"create", "delete", "get", "list", "watch", "patch"}
)

// matchTypes returns the types to sync or to report, by resource.group, each in the first of the upstream's versions that
// both sides serve, and why the others are not.
func (s *Syncer) matchTypes(up, down *surface) (map[string]kind, map[schema.GroupVersionResource]Reason) {
	wanted, unsynced := map[string]kind{}, map[schema.GroupVersionResource]Reason{}
	reasons := map[schema.GroupResource]schema.GroupVersionResource{}
	fail := func(gvr schema.GroupVersionResource, reason Reason) {
		if known, ok := reasons[gvr.GroupResource()]; ok {
			delete(unsynced, known)
		}
		reasons[gvr.GroupResource()] = gvr
		unsynced[gvr] = reason
	}
	for _, gvr := range up.order {
		gr := gvr.GroupResource()
		if _, done := wanted[gr.String()]; done {
			continue
		}
		a, b := up.resources[gvr], down.resources[gvr]
		switch {
		case !slices.Contains(a.Verbs, "list"):
			continue // a review or the like, not an object
		case !s.opts.Types(gr):
			fail(gvr, ReasonExcluded)
		case !hasAll(a.Verbs, verbsUp):
			fail(gvr, ReasonNotServedUpstream)
		case !hasAll(b.Verbs, verbsDown):
			fail(gvr, ReasonNotServedDownstream)
		case a.Namespaced != b.Namespaced:
			fail(gvr, ReasonScope)
		default:
			wanted[gr.String()] = kind{GVR: gvr, Kind: a.Kind, Namespaced: a.Namespaced, UpStatus: up.status[gvr], DownStatus: down.status[gvr], Refused: s.opts.refusesType(gr)}
			if known, ok := reasons[gr]; ok {
				delete(unsynced, known)
			}
		}
	}
	for _, gvr := range down.order {
		if _, ok := up.resources[gvr]; ok || !slices.Contains(down.resources[gvr].Verbs, "list") || !s.opts.Types(gvr.GroupResource()) {
			continue
		}
		if _, ok := wanted[gvr.GroupResource().String()]; !ok && reasons[gvr.GroupResource()].Empty() {
			fail(gvr, ReasonNotServedUpstream)
		}
	}
	return wanted, unsynced
}

func hasAll(have, need []string) bool {
	return !slices.ContainsFunc(need, func(verb string) bool { return !slices.Contains(have, verb) })
}

// surface is what one side serves.
type surface struct {
	order     []schema.GroupVersionResource // preferred versions first
	resources map[schema.GroupVersionResource]metav1.APIResource
	status    map[schema.GroupVersionResource]bool
	failed    map[string]bool // groups of which a version could not be asked about
}

func (s *surface) unknown(group string) bool { return s.failed[group] }

var errNothingServed = errors.New("discovery returned no types")

func served(d region.Discovery) (*surface, error) {
	groups, lists, err := d.ServerGroupsAndResources()
	partial := &discovery.ErrGroupDiscoveryFailed{}
	if err != nil && !errors.As(err, &partial) {
		return nil, err
	}
	if len(lists) == 0 {
		return nil, errors.Join(errNothingServed, err)
	}
	s := &surface{resources: map[schema.GroupVersionResource]metav1.APIResource{}, status: map[schema.GroupVersionResource]bool{}, failed: map[string]bool{}}
	for gv := range partial.Groups {
		s.failed[gv.Group] = true
	}
	byVersion := map[string]*metav1.APIResourceList{}
	for _, list := range lists {
		byVersion[list.GroupVersion] = list
	}
	for _, group := range groups {
		for _, version := range group.Versions {
			list := byVersion[version.GroupVersion]
			if list == nil {
				continue
			}
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			for _, r := range list.APIResources {
				name, sub, isSub := cutSubresource(r.Name)
				gvr := gv.WithResource(name)
				switch {
				case !isSub:
					s.order = append(s.order, gvr)
					s.resources[gvr] = r
				case sub == "status":
					s.status[gvr] = true
				}
			}
		}
	}
	return s, nil
}
