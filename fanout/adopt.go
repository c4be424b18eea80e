// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// Adopt makes the protocol manage an object that a person or a tool applied in peer. It creates the
// object's guards or replicas in all other peers. Then it writes the object's claim, the field that
// shows which operation took the name: from then on the object is in effect. The object's content
// and the ownership of its fields do not change; edits that a person makes during the adoption are
// adopted, too. If the object is a committed primary already, Adopt succeeds with
// Operation.AlreadyDone.
//
// Adopt waits until the adoption is durable, and returns nil if the adoption is committed. Unless
// the error is an *InDoubtError or wraps ErrEnded, a failed adoption has not changed the object.
// The error is a *HeldError if an object in another peer has the name, or if the object in peer is
// a reservation. If the object in the other peer has no claim either, HeldError.Operation is empty:
// delete one of the two objects by hand to adopt the other one. HeldError.Rivals has all objects
// without a claim, and is the same for each of them. The error wraps ErrNotFound if peer
// does not hold the object, and is otherwise an error of Add. Guards that a failed adoption created
// stay as long as the object exists. Adopt blocks, is safe for concurrent use, and is idempotent.
// If a kind sets AdoptApplied, Start adopts its applied objects without a call of Adopt.
func (c *Coordinator) Adopt(ctx context.Context, peer region.PeerName, gk schema.GroupKind, key types.NamespacedName) (*Operation, error) {
	return c.submitter.adopt(ctx, peer, gk, key, "")
}

func (b *submitter) adopt(ctx context.Context, peer region.PeerName, gk schema.GroupKind, key types.NamespacedName, uid types.UID) (*Operation, error) {
	kind, err := b.kinds.find(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err == nil {
		err = kind.checkOwner(key.Name)
	}
	if err == nil && peer == "" {
		err = errors.New("peer is empty: name the peer that holds the object")
	}
	if err != nil {
		return nil, fmt.Errorf("adopt: %w", err)
	}
	op, _, err := b.submit(ctx, request{
		action: protocol.Adopt,
		kind:   kind,
		key:    key,
		target: peer,
		uid:    uid,

		durable: true,
	})
	return op, err
}

// adoptApplied adopts, for each kind with AdoptApplied, the objects that have no claim. It skips a
// name under which several peers hold such an object, and a name that has a primary: see
// adoptablePeer. It also skips the names that this coordinator does not sweep: see owns.
func (w *sweeper) adoptApplied(ctx context.Context) error {
	peers, err := w.clusters.peers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, kind := range w.opts.Kinds {
		if !kind.AdoptApplied {
			continue
		}
		s := w.surveyor.survey(ctx, kind, peers)
		var g errgroup.Group
		g.SetLimit(sweepers)
		keys := s.keys()
		failures := make([]error, len(keys))
		for i, key := range keys {
			peer, ok := s.adoptablePeer(key)
			if !ok || !w.owns(kind, key) {
				continue
			}
			g.Go(func() error {
				_, failures[i] = w.submitter.adopt(ctx, region.PeerName(peer), kind.GroupKind(), key, s.late[key][peer].obj.GetUID())
				return nil
			})
		}
		_ = g.Wait()
		errs = append(errs, failures...)
	}
	return errors.Join(errs...)
}

// adoptablePeer returns the peer that holds the only object of key without a claim. It returns false
// if no peer or several peers hold such an object, if that object is being deleted, if key has a
// primary, or if the claim of an object of key cannot be read.
func (s survey) adoptablePeer(key types.NamespacedName) (string, bool) {
	found := ""
	for _, peer := range slices.Sorted(maps.Keys(s.late[key])) {
		m := s.late[key][peer]
		switch {
		case m.bad != nil, m.view.Claimed && m.view.Primary(protocol.Mode(s.kind.Mode)):
			return "", false
		case !m.view.Claimed && (found != "" || m.view.Terminating):
			return "", false
		case !m.view.Claimed:
			found = peer
		}
	}
	return found, found != ""
}

// applied adds a finding for each object that waits for its adoption: it has no claim, its kind has
// AdoptApplied, and no primary owns its name.
func (e *examination) applied(owners []string) {
	if !e.survey.kind.AdoptApplied || len(owners) > 0 {
		return
	}
	var peers []string
	var all []Rival
	for _, peer := range slices.Sorted(maps.Keys(e.survey.late[e.key])) {
		if m := e.survey.late[e.key][peer]; m.bad == nil && !m.view.Claimed {
			peers = append(peers, peer)
			all = append(all, Rival{region.PeerName(peer), m.obj.GetUID(), m.obj.GetCreationTimestamp().UTC()})
		}
	}
	for _, peer := range peers {
		text := "it was applied without a claim and is not adopted yet: Start adopts it, or Adopt"
		if len(peers) > 1 {
			text = rivalsMessage(e.key, e.survey.kind, all)
		}
		e.report("adoption", peer, met{}, true, "%s", text).UID = e.survey.late[e.key][peer].obj.GetUID()
	}
}
