// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
)

// kind describes a type that both sides serve. It is comparable.
type kind struct {
	GVR        schema.GroupVersionResource
	Kind       string
	Namespaced bool
	// UpStatus and DownStatus: the status is a subresource on that side.
	UpStatus, DownStatus bool
	// Refused is the reason why objects of the type are only reported; empty: they are synced.
	Refused string
}

func (k kind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.GVR.Group, Kind: k.Kind}
}

// typeDiscovery finds the types that both sides serve, and runs a controller for each.
type typeDiscovery struct{ syncer *Syncer }

// run compares the types of both sides every Options.Discovery until ctx ends, then waits for the controllers.
func (d typeDiscovery) run(ctx context.Context) {
	s := d.syncer
	var running sync.WaitGroup
	defer running.Wait()
	schemas := &schemaComparer{up: s.up.Discovery().OpenAPIV3(), down: s.down.Discovery().OpenAPIV3(), known: map[schema.GroupVersion]comparedGroup{}}
	for ctx.Err() == nil {
		types, err := d.compare()
		if err != nil {
			logging.From(ctx).Info("Types are not known", "reason", err.Error())
		} else {
			d.set(ctx, &running, types)
			d.compareSchemas(ctx, schemas)
		}
		for _, c := range s.synced() {
			c.records.dropRewritten(s.opts.Fights.Within)
		}
		s.otherSyncers.report(ctx)
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

// compared is what a comparison of the types of both sides has found.
type compared struct {
	wanted   map[string]kind                        // the types to run controllers for, by resource.group
	unsynced map[schema.GroupVersionResource]Reason // why other types are not synced
	unknown  map[string]bool                        // types of autoscalers whose discovery failed
}

// set starts and stops controllers. The objects of a stopped controller stay as they are.
func (d typeDiscovery) set(ctx context.Context, running *sync.WaitGroup, types compared) {
	s := d.syncer
	var stopped, started []*controller
	s.mu.Lock()
	s.unsynced = types.unsynced
	for name, c := range s.controllers {
		if k, ok := types.wanted[name]; !ok || k != c.kind {
			delete(s.controllers, name)
			stopped = append(stopped, c)
		}
	}
	for name, k := range types.wanted {
		if s.controllers[name] == nil {
			c := newController(s, name, k)
			s.controllers[name] = c
			started = append(started, c)
		}
	}
	sources := maps.Clone(s.controllers)
	s.mu.Unlock()
	fewer := false
	for of := range s.autoscalers.types {
		fewer = s.autoscalers.follow(of, sources[of], types.unknown[of]) || fewer
	}
	if fewer {
		s.enqueueAutoscaled()
	}
	for _, c := range stopped {
		c.stop()
		if c.kind.Refused == "" {
			s.opts.Observer.kind(ctx, TypeEvent{Resource: c.kind.GVR})
		}
	}
	for _, c := range started {
		typeCtx, cancel := context.WithCancel(ctx)
		c.stop = cancel
		running.Go(func() { c.run(typeCtx) })
		if c.kind.Refused == "" {
			s.opts.Observer.kind(ctx, TypeEvent{Resource: c.kind.GVR, Synced: true})
		}
	}
}

// compare compares the types of both sides.
func (d typeDiscovery) compare() (compared, error) {
	s := d.syncer
	up, err := served(s.up.Discovery())
	if err != nil {
		return compared{}, err
	}
	down, err := served(s.down.Discovery())
	if err != nil {
		return compared{}, err
	}
	s.mu.Lock()
	present := map[string]kind{}
	for name, c := range s.controllers {
		present[name] = c.kind
	}
	s.mu.Unlock()
	wanted, unsynced := s.opts.matchTypes(up, down)
	unknown := func(group string) bool { return up.unknown(group) || down.unknown(group) }
	for name, k := range present {
		if !unknown(k.GVR.Group) {
			continue
		}
		// Discovery of the group failed: the type stays, in the version that it had.
		wanted[name] = k
		maps.DeleteFunc(unsynced, func(gvr schema.GroupVersionResource, _ Reason) bool {
			return gvr.GroupResource() == k.GVR.GroupResource()
		})
	}
	undiscovered := map[string]bool{}
	for of, t := range s.autoscalers.types {
		undiscovered[of] = unknown(t.Resource().Group)
	}
	return compared{wanted, unsynced, undiscovered}, nil
}

var (
	verbsUp   = []string{"get", "list", "watch", "patch"}
	verbsDown = []string{"create", "delete", "get", "list", "watch", "patch"}
)

// matchTypes returns the types to sync or to report, by resource.group, and for each other type the reason why it is
// not synced. Each type is in the first of the upstream's versions that both sides serve.
func (o Options) matchTypes(up, down *surface) (map[string]kind, map[schema.GroupVersionResource]Reason) {
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
		if !slices.Contains(a.Verbs, "list") {
			continue // objects of this type are not stored, such as reviews
		}
		if reason := o.mismatch(gr, a, b); reason != "" {
			fail(gvr, reason)
			continue
		}
		wanted[gr.String()] = kind{GVR: gvr, Kind: a.Kind, Namespaced: a.Namespaced, UpStatus: up.status[gvr], DownStatus: down.status[gvr], Refused: o.refusesType(gr)}
		if known, ok := reasons[gr]; ok {
			delete(unsynced, known)
		}
	}
	for _, gvr := range down.order {
		if _, ok := up.resources[gvr]; ok || !slices.Contains(down.resources[gvr].Verbs, "list") || !o.Types(gvr.GroupResource()) {
			continue
		}
		if _, ok := wanted[gvr.GroupResource().String()]; !ok && reasons[gvr.GroupResource()].Empty() {
			fail(gvr, ReasonNotServedUpstream)
		}
	}
	return wanted, unsynced
}

// mismatch returns the reason why a version of a type, as both sides serve it, cannot be synced; "" if it can.
func (o Options) mismatch(gr schema.GroupResource, up, down metav1.APIResource) Reason {
	switch {
	case !o.Types(gr):
		return ReasonExcluded
	case !hasAll(up.Verbs, verbsUp):
		return ReasonNotServedUpstream
	case !hasAll(down.Verbs, verbsDown):
		return ReasonNotServedDownstream
	case up.Namespaced != down.Namespaced:
		return ReasonScope
	}
	return ""
}

func hasAll(have, need []string) bool {
	return !slices.ContainsFunc(need, func(verb string) bool { return !slices.Contains(have, verb) })
}

// surface is the set of types that one side serves.
type surface struct {
	order     []schema.GroupVersionResource // preferred versions first
	resources map[schema.GroupVersionResource]metav1.APIResource
	status    map[schema.GroupVersionResource]bool
	failed    map[string]bool // groups with a version whose discovery failed
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
				name, sub, isSub := strings.Cut(r.Name, "/")
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
