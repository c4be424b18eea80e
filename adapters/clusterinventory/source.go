// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// Source is a region.Source of the ClusterProfiles in one namespace: each profile is a peer of the same name. It only
// reads. Use New. It is safe for concurrent use.
type Source struct {
	opts     Options
	profiles *loop.Objects
	verifier *verifier
	started  atomic.Bool
	dirty    chan struct{}               // signals that the Snapshot may have changed
	records  map[region.PeerName]*record // used by Run only
}

var (
	_ region.Source    = (*Source)(nil)
	_ region.Refresher = (*Source)(nil)
)

// New makes a Source of the ClusterProfiles in hub. It does no I/O and starts nothing: pass the Source to region.NewRing.
// The error names the argument or option.
func New(hub region.API, opts Options) (*Source, error) {
	if argument.Missing(hub) {
		return nil, errors.New("clusterinventory: hub is nil; make one with region.APIFor")
	}
	opts, err := opts.checked()
	if err != nil {
		return nil, err
	}
	s := &Source{opts: opts, dirty: make(chan struct{}, 1), records: map[region.PeerName]*record{}}
	s.verifier = newVerifier(s.wake)
	s.profiles = loop.NewObjects(hub.Dynamic(), resource(), loop.ObjectsOptions{
		Namespace: opts.Namespace, Labels: opts.Selector,
		Strip:   func(obj *unstructured.Unstructured) { obj.SetManagedFields(nil) },
		Changed: func(types.NamespacedName) { s.wake() },
	})
	return s, nil
}

// Trust returns the Trust with the programs and variables of Options.Plugins, for region.KeepOptions. It does no I/O.
func (s *Source) Trust() region.Trust { return trustIn(s.opts.Trust, nil) }

// Refresh does nothing, since ClusterProfiles are watched. Its existence makes rejected requests wait briefly for newer
// credentials, such as those that the plugin gives next. It does not block and is safe for concurrent use.
func (s *Source) Refresh() {}

const (
	// firstLook limits how long the first Snapshot waits for the IDs of clusters.
	firstLook = 5 * time.Second
	// debounce is the shortest time between two Snapshots.
	debounce = 20 * time.Millisecond
)

// Run publishes a Snapshot as soon as all profiles are listed and the IDs of their clusters are read, at most 5 seconds
// after the list, and after every change. While the hub is unreachable, or does not serve ClusterProfiles, it publishes
// nothing. It blocks until ctx ends, and waits for its goroutines. It returns an error only if it was misused: a Source
// without New, a nil publish, or a second call.
func (s *Source) Run(ctx context.Context, publish func(*region.Snapshot)) error {
	switch {
	case s.profiles == nil:
		return errors.New("clusterinventory: the Source was not made by New")
	case publish == nil:
		return errors.New("clusterinventory: publish is nil: give the func that takes each Snapshot, as a region.Ring does")
	case s.started.Swap(true):
		return errors.New("clusterinventory: Run was called twice")
	}
	ctx, cancel := context.WithCancel(logging.Into(ctx, s.opts.Logger, "clusterinventory"))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = s.profiles.Start(ctx) })
	wg.Go(func() { _ = s.verifier.queue.Start(ctx, s.verifier.verify) })
	select {
	case <-s.profiles.Synced():
		s.publish(ctx, publish)
	case <-ctx.Done():
	}
	return nil
}

// publish publishes a Snapshot after each change, until ctx ends.
func (s *Source) publish(ctx context.Context, publish func(*region.Snapshot)) {
	deadline := time.NewTimer(firstLook)
	defer deadline.Stop()
	var last []string
	for late := false; ; {
		peers, state, complete := s.peers(ctx)
		if (late || complete) && (last == nil || !slices.Equal(state, last)) {
			if snapshot, err := region.NewSnapshot(peers...); err != nil {
				logging.From(ctx).Error(err, "Peers cannot be published; keeping those published before")
			} else {
				publish(snapshot)
				last, late = state, true
			}
		}
		select {
		case <-s.dirty:
		case <-deadline.C:
			late = true
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(debounce):
		case <-ctx.Done():
			return
		}
	}
}

func (s *Source) wake() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// peers returns the peers of the cached profiles, and their state as text, which is never nil. complete means that the
// ID of each cluster was read once, with or without success.
func (s *Source) peers(ctx context.Context) (peers []region.Peer, state []string, complete bool) {
	records := s.read()
	peers, problems := serve(records)
	state, complete = make([]string, len(peers)), true
	for i := range peers {
		peer := &peers[i]
		r := s.records[peer.Name]
		problem := r.problem
		if problem == "" {
			problem = problems[peer.Name]
		}
		v := s.verifier.want(*peer, r.id)
		complete = complete && !v.pending
		switch {
		case v.withheld:
			peer.Credentials = region.Withheld(v.refusal)
		case v.refusal != nil:
			peer.Credentials = region.Unread(v.refusal)
		}
		if problem == "" && v.refusal != nil && !v.pending {
			problem = v.refusal.Error()
		}
		r.report(ctx, problem)
		state[i] = fmt.Sprint(peer.Name, peer.Regions, peer.Labels, peer.UID, peer.Credentials, problem, v.refusal)
	}
	return peers, state, complete
}

// read updates the records from the cache.
func (s *Source) read() []*record {
	records := map[region.PeerName]*record{}
	list := make([]*record, 0, len(s.records))
	for _, obj := range s.profiles.List() {
		name := region.PeerName(obj.GetName())
		r := s.records[name]
		if r == nil || r.uid != obj.GetUID() {
			r = &record{uid: obj.GetUID(), created: obj.GetCreationTimestamp()}
		}
		r.read(&s.opts, obj)
		records[name] = r
		list = append(list, r)
	}
	s.records = records
	s.verifier.keep(func(name region.PeerName) bool { return records[name] != nil })
	return list
}
