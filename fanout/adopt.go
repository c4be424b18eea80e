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

// Adopt puts the object that a person or a tool applied in peer under the
// protocol, as it stands there: its name is guarded in all other peers, then it
// gets its claim and is in force. Its content and who owns its fields stay as
// they are; what is edited meanwhile is adopted as edited. An object that is
// under the protocol already is success, with Operation.AlreadyDone.
//
// It returns nil when the adoption is committed, as Add does, but waits until it is
// durable. Otherwise the
// object is as it was, without a claim: the error is a *HeldError if another
// object has the name, be it one without a claim in another peer (Operation is
// empty then: once one of the two is deleted by hand, the other can be adopted);
// it wraps ErrNotFound if peer holds no such object, and otherwise is as Add's.
// Guards that a failed adoption made stay as long as the object lives. Adopt
// blocks, is safe for concurrent use, and may be repeated. Start adopts by itself
// for kinds with AdoptApplied.
func (c *Coordinator) Adopt(ctx context.Context, peer region.PeerName, gk schema.GroupKind, key types.NamespacedName) (*Operation, error) {
	return c.adoptObject(ctx, peer, gk, key, "")
}

func (c *Coordinator) adoptObject(ctx context.Context, peer region.PeerName, gk schema.GroupKind, key types.NamespacedName, uid types.UID) (*Operation, error) {
	kind, err := c.kindFor(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err == nil {
		err = kind.checkOwner(key.Name)
	}
	if err == nil && peer == "" {
		err = errors.New("peer is empty: name the one in which the object stands")
	}
	if err != nil {
		return nil, fmt.Errorf("adopt: %w", err)
	}
	op, _, err := c.submit(ctx, request{
		action: protocol.Adopt,
		kind:   kind,
		key:    key,
		target: peer,
		uid:    uid,

		durable: true,
	})
	return op, err
}

// adoptApplied adopts what stands without a claim, for the kinds that want it. It
// leaves alone the names that objects without a claim have in several peers, and
// those that another object has.
func (c *Coordinator) adoptApplied(ctx context.Context) error {
	peers, err := c.peers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, kind := range c.opts.Kinds {
		if !kind.AdoptApplied {
			continue
		}
		s := c.look(ctx, kind, peers)
		var g errgroup.Group
		g.SetLimit(sweepers)
		keys := s.keys()
		failures := make([]error, len(keys))
		for i, key := range keys {
			peer, ok := s.applied(key)
			if !ok || !c.owns(kind, key) {
				continue
			}
			g.Go(func() error {
				_, failures[i] = c.adoptObject(ctx, region.PeerName(peer), kind.GroupKind(), key, s.late[key][peer].obj.GetUID())
				return nil
			})
		}
		_ = g.Wait()
		errs = append(errs, failures...)
	}
	return errors.Join(errs...)
}

// applied returns the peer in which an object of that key stands that can be
// adopted.
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

// applied examines what was applied without a claim while nobody owns the name,
// for a kind whose objects are to be adopted.
func (e *examination) applied(owners []string) {
	if !e.kind.AdoptApplied || len(owners) > 0 {
		return
	}
	var peers []string
	for _, peer := range slices.Sorted(maps.Keys(e.late[e.key])) {
		if m := e.late[e.key][peer]; m.bad == nil && !m.view.Claimed {
			peers = append(peers, peer)
		}
	}
	for _, peer := range peers {
		text := "it was applied without a claim and is not adopted yet: Start adopts it, or Adopt"
		if len(peers) > 1 {
			text = fmt.Sprintf("it was applied without a claim in peers %s: delete all but one by hand, that one can be adopted", strings.Join(peers, ", "))
		}
		e.report("adoption", peer, met{}, true, "%s", text).UID = e.late[e.key][peer].obj.GetUID()
	}
}
