// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// met is an object that a survey read.
type met struct {
	obj  *unstructured.Unstructured
	view protocol.Object
	bad  error // why its state cannot be read
}

// survey is the state of one kind in all peers.
type survey struct {
	kind   Kind
	peers  []string // that answered, sorted
	unread map[string]error
	// early and late are two reads of every peer, by key and peer. The second read of any peer
	// began after the first reads of all peers had ended. So each primary in late was read after
	// every secondary in early.
	early, late map[types.NamespacedName]map[string]met
	sets        map[string]protocol.PeerSet
}

// lookout is a func that surveys all objects of a kind in the peers, or those of one name.
type lookout func(ctx context.Context, kind Kind, peers []string) survey

// surveyor reads what the peers hold.
type surveyor struct {
	opts     *Options
	clusters *clusters
}

// survey surveys the kind in the given peers.
func (v *surveyor) survey(ctx context.Context, kind Kind, peers []string) survey {
	return v.lookTwice(kind, peers, func(peer region.PeerName) ([]unstructured.Unstructured, protocol.PeerSet, error) {
		return v.listPeer(ctx, kind, peer)
	})
}

// fetch reads the PeerSet of one peer, and then objects in it.
type fetch func(region.PeerName) ([]unstructured.Unstructured, protocol.PeerSet, error)

func (v *surveyor) lookTwice(kind Kind, peers []string, read fetch) survey {
	s := survey{kind: kind, unread: map[string]error{}, sets: map[string]protocol.PeerSet{}}
	s.early = s.gather(peers, read)
	s.late = s.gather(peers, read)
	for _, p := range peers {
		// Another peer's answer may have shown meanwhile that p is the wrong cluster.
		if conn, err := v.clusters.directory.Conn(region.PeerName(p)); err == nil && s.unread[p] == nil {
			if _, wrong := v.clusters.identities.standing(conn); wrong != nil {
				s.drop(p, explain(region.PeerName(p), "read the PeerSet", wrong))
			}
		}
	}
	for _, p := range peers {
		if s.unread[p] == nil {
			s.peers = append(s.peers, p)
		}
	}
	return s
}

// drop discards everything that was read from a peer, because its cluster must not be trusted.
func (s *survey) drop(peer string, why error) {
	s.unread[peer] = why
	delete(s.sets, peer)
	for _, found := range []map[types.NamespacedName]map[string]met{s.early, s.late} {
		for _, at := range found {
			delete(at, peer)
		}
	}
}

// unreadAll adds the errors of unread peers to all. The first error of a peer stays, because a
// later error may report only that the deadline has passed.
func unreadAll(all, unread map[string]error) {
	for peer, err := range unread {
		if all[peer] == nil {
			all[peer] = err
		}
	}
}

// readOf returns for each peer whether it could be read.
func readOf(op string, peers []string, unread map[string]error) region.Results[struct{}] {
	var outcomes []region.Outcome[struct{}]
	for _, p := range peers {
		outcomes = append(outcomes, region.Outcome[struct{}]{Peer: region.PeerName(p), Err: unread[p]})
	}
	return region.ResultsOf(op, outcomes...)
}

// gather reads every peer once.
func (s *survey) gather(peers []string, read fetch) map[types.NamespacedName]map[string]met {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		found = map[types.NamespacedName]map[string]met{}
	)
	// A peer that could not be read is not judged, so it is not read again.
	readable := slices.DeleteFunc(slices.Clone(peers), func(p string) bool { return s.unread[p] != nil })
	for _, peer := range readable {
		wg.Go(func() {
			list, set, err := read(region.PeerName(peer))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.unread[peer] = err
				return
			}
			s.sets[peer] = set
			for i := range list {
				key := objectKey(&list[i])
				if found[key] == nil {
					found[key] = map[string]met{}
				}
				view, _, err := s.kind.view(&list[i])
				found[key][peer] = met{obj: &list[i], view: view, bad: err}
			}
		})
	}
	wg.Wait()
	return found
}

// pageSize bounds the number of objects in one answer of a peer.
const pageSize = 500

// listPeer reads the PeerSet in peer, and then all objects of the kind. It returns an error if the
// cluster behind peer is the wrong one. Each request has the time limit of one call.
func (v *surveyor) listPeer(ctx context.Context, kind Kind, peer region.PeerName) ([]unstructured.Unstructured, protocol.PeerSet, error) {
	conn, err := v.clusters.directory.Conn(peer)
	if err != nil {
		return nil, protocol.PeerSet{}, explain(peer, "connect", err)
	}
	set, err := within(ctx, v.opts.CallTimeout, func(ctx context.Context) (*readSet, error) { return v.clusters.readSet(ctx, conn) })
	if err != nil {
		return nil, protocol.PeerSet{}, explain(peer, "read the PeerSet", err)
	}
	var (
		items []unstructured.Unstructured
		opts  = metav1.ListOptions{Limit: pageSize}
	)
	for {
		list, err := within(ctx, v.opts.CallTimeout, func(ctx context.Context) (*unstructured.UnstructuredList, error) {
			return conn.Dynamic().Resource(kind.Resource).List(ctx, opts)
		})
		if err != nil {
			return nil, protocol.PeerSet{}, explain(peer, "list "+kind.Resource.Resource, err)
		}
		items = append(items, list.Items...)
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return items, set.view, nil
		}
	}
}

// within makes one request with a time limit.
func within[T any](ctx context.Context, limit time.Duration, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return request(ctx)
}

// keys returns all keys that the survey found, in order.
func (s survey) keys() []types.NamespacedName {
	all := maps.Clone(s.early)
	if all == nil {
		all = map[types.NamespacedName]map[string]met{}
	}
	for key := range s.late {
		if _, ok := all[key]; !ok {
			all[key] = nil
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
