// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
)

func newRingID() string {
	var random [10]byte
	// crypto/rand.Read never fails.
	_, _ = rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

// ringRounds bounds how often ensureRing reads the PeerSets: at first, after it has made the ID,
// after it has copied the ID, and once more if another process made the ID concurrently.
const ringRounds = 4

// ensureRing gives a ring of the first release its ID, and copies the ID to members that lack
// it. It does nothing unless all members answer and no change of the membership is under way.
func (cs *clusters) ensureRing(ctx context.Context, peers []string) error {
	for range ringRounds {
		sets := cs.readSets(ctx, peers)
		plan := protocol.PlanRing(sets)
		switch {
		case plan.Conflict != "":
			return fmt.Errorf("%w: %s: delete the PeerSet that is wrong, remove its peer by force, and join it again", ErrOtherRing, plan.Conflict)
		case len(plan.At) == 0:
			return nil
		case plan.ID == "":
			plan.ID = cmp.Or(cs.identities.known(), newRingID())
		}
		for _, p := range plan.At {
			if done, err := cs.writeRing(ctx, region.PeerName(p), sets[p].RV, plan.ID); err != nil || !done {
				return explain(region.PeerName(p), "write the ring's ID", err)
			}
		}
	}
	return nil
}

// trustAll returns for each peer why its cluster is not trusted; nil if the cluster is trusted.
func (cs *clusters) trustAll(ctx context.Context, peers []string) []error {
	errs := make([]error, len(peers))
	var wg sync.WaitGroup
	for i, p := range peers {
		wg.Go(func() {
			_, err := cs.trusted(ctx, region.PeerName(p))
			errs[i] = explain(region.PeerName(p), "identify", err)
		})
	}
	wg.Wait()
	return errs
}

// identify returns an error if a peer is the wrong cluster: a change of the membership would
// wait for that peer, and a peer of another ring must not join. If the ring has no ID, identify
// makes one, so that a joining peer gets it.
func (cs *clusters) identify(ctx context.Context, peers []string) error {
	errs := cs.trustAll(ctx, peers)
	for _, err := range errs {
		if errors.Is(err, ErrWrongPeer) {
			return err
		}
	}
	if err := errors.Join(errs...); err != nil || !cs.identities.lackRing() {
		return nil // the change waits for a silent peer, and names it
	}
	if err := cs.ensureRing(ctx, peers); errors.Is(err, ErrOtherRing) {
		return err
	}
	return nil
}

// lacksRing reports whether a PeerSet has no ring ID.
func lacksRing(sets map[string]protocol.PeerSet) bool {
	for _, set := range sets {
		if set.Ring == "" && set.Self.Peer != "" {
			return true
		}
	}
	return false
}

// writeRing writes the ring's ID into a PeerSet, unless the PeerSet has changed since it was
// read; the caller reads it again. It returns false if the cluster cannot store the ID: it has
// the first release's CRD, or forbids the update.
func (cs *clusters) writeRing(ctx context.Context, peer region.PeerName, rv, id string) (bool, error) {
	conn, err := cs.trusted(ctx, peer)
	if err != nil {
		return false, err
	}
	if cs.identities.ringless(conn) {
		return false, nil
	}
	now, err := cs.editSet(ctx, conn, rv, func(spec map[string]any) bool {
		spec["ring"] = id
		return true
	})
	switch {
	case apierrors.IsForbidden(err):
		cs.identities.keepsNoRing(conn)
		logging.From(ctx).Info("the ring's ID cannot be written: grant the rights that \"atollctl rbac\" prints", "peer", peer, "error", err.Error())
		return false, nil
	case err != nil:
		return false, err
	case now == nil:
		return true, nil
	}
	if kept, _, _ := unstructured.NestedString(now.Object, "spec", "ring"); kept != id {
		cs.identities.keepsNoRing(conn)
		logging.From(ctx).Info("the ring's ID is not kept: install this release's CRDs (atollctl install-crds)", "peer", peer)
		return false, nil
	}
	return true, nil
}
