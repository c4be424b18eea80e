// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/rivals"
	"github.com/atoll-dev/atoll/region"
)

// Rival is one of several objects of one name that were applied in different peers without a claim.
type Rival struct {
	Peer    region.PeerName
	UID     types.UID
	Created time.Time
}

// rivalry has the rivals of an operation, and the text about them.
type rivalry struct {
	all  []Rival
	text string
}

// Rivals returns all objects of the name that were applied without a claim, sorted by peer, if several peers have one and
// no object is committed; otherwise nil. Delete all but one of them by hand.
func (e *HeldError) Rivals() []Rival {
	if e.rivals == nil {
		return nil
	}
	return slices.Clone(e.rivals.all)
}

// rivalsMessage names all rivals and the remedy. It is the same in each peer.
func rivalsMessage(key types.NamespacedName, k Kind, of []Rival) string {
	all := make([]rivals.Rival, len(of))
	for i, r := range of {
		all[i] = rivals.Rival{Peer: string(r.Peer), UID: string(r.UID), Created: r.Created}
	}
	return rivals.Message(rivals.Command(k.Resource.GroupResource().String(), key.Namespace, key.Name), all)
}

// rivalsOf returns the objects without a claim, sorted by peer, if several peers have one and none of the objects is
// committed: then no object has the name.
func rivalsOf(objects map[region.PeerName]*unstructured.Unstructured, kind Kind) (found []Rival) {
	for _, peer := range slices.Sorted(maps.Keys(objects)) {
		obj := objects[peer]
		state, err := kind.State(obj)
		switch {
		case err != nil:
		case state == nil || state.Claim == nil:
			found = append(found, Rival{peer, obj.GetUID(), obj.GetCreationTimestamp().UTC()})
		case state.Claim.Role == v1alpha1.RolePrimary && state.Stage != v1alpha1.StageReserved:
			return nil
		}
	}
	if len(found) < 2 {
		return nil
	}
	return found
}

// nameRivals adds the rivals to the HeldError in err. Which of them has stopped the operation depends on the attempt.
func (b *submitter) nameRivals(ctx context.Context, req request, err error) {
	held, ok := errors.AsType[*HeldError](err)
	if !ok || cmp.Or(held.Stage, string(v1alpha1.StageReserved)) != string(v1alpha1.StageReserved) {
		return
	}
	results, _ := region.Each(ctx, b.clusters.directory, "read the rivals", region.BestEffort(), func(ctx context.Context, conn *region.Conn) (*unstructured.Unstructured, error) {
		limit, err := b.clusters.reach.begin(b.clusters, conn.Peer())
		if err != nil {
			return nil, err
		}
		call, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if err := b.clusters.trust(call, conn); err != nil {
			return nil, err
		}
		return req.kind.in(conn, req.key.Namespace).Get(call, req.key.Name, metav1.GetOptions{})
	})
	objects := map[region.PeerName]*unstructured.Unstructured{}
	for o := range results.All() {
		if o.Err == nil {
			objects[o.Peer] = o.Value
		}
	}
	if all := rivalsOf(objects, req.kind); all != nil {
		held.rivals = &rivalry{all, rivalsMessage(req.key, req.kind, all)}
	}
}
