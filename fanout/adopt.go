// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// Adopt puts the object that a person or a tool applied in peer under the protocol. It creates
// guards of its name in all other peers, then writes the object's claim, which puts it in
// effect. The content and the ownership of its fields do not change; edits made meanwhile are
// adopted, too. An object that has a claim already is success, with Operation.AlreadyDone.
//
// Adopt returns nil if the adoption is committed, and waits until it is durable. Otherwise the
// object has no claim and is unchanged: the error is a *HeldError if another object has the
// name, also one without a claim in another peer (Operation is empty then: delete one of the
// two by hand to adopt the other). It wraps ErrNotFound if peer does not hold the object, and
// is otherwise an error of Add. Guards that a failed adoption created stay as long as the
// object exists. Adopt blocks, is safe for concurrent use, and is idempotent. Start adopts
// objects of kinds with AdoptApplied by itself.
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

// adoptApplied adopts the objects without a claim of the kinds with AdoptApplied. It skips a
// name that several peers hold without a claim, and a name that a primary has.
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
			peer, ok := s.applied(key)
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

// applied returns the peer whose object of key can be adopted; false if there is not exactly
// one.
func (s survey) applied(key types.NamespacedName) (string, bool) {
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

// applied reports the objects without a claim of a name that has no owner, for a kind with
// AdoptApplied.
func (e *examination) applied(owners []string) {
	if !e.survey.kind.AdoptApplied || len(owners) > 0 {
		return
	}
	var peers []string
	for _, peer := range slices.Sorted(maps.Keys(e.survey.late[e.key])) {
		if m := e.survey.late[e.key][peer]; m.bad == nil && !m.view.Claimed {
			peers = append(peers, peer)
		}
	}
	for _, peer := range peers {
		text := "it was applied without a claim and is not adopted yet: Start adopts it, or Adopt"
		if len(peers) > 1 {
			text = fmt.Sprintf("it was applied without a claim in peers %s: delete all but one by hand, that one can be adopted", strings.Join(peers, ", "))
		}
		e.report("adoption", peer, met{}, true, "%s", text).UID = e.survey.late[e.key][peer].obj.GetUID()
	}
}
