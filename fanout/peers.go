// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// InitPeers writes the first PeerSet of every peer of the Directory, with all of them as Active
// members. Every peer must answer. It is idempotent. To add a peer to an existing ring, call Join
// instead. Before InitPeers writes anything, it returns an error that wraps ErrMembership if a
// peer has a different PeerSet, ErrOtherRing if two peers belong to different rings, or
// region.ErrSameCluster if two peers are one cluster.
func (c *Coordinator) InitPeers(ctx context.Context) error {
	if _, err := c.clusters.peers(ctx); err != nil {
		return err
	}
	silent, err := c.clusters.distinct(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return cmp.Or(silent, context.Cause(ctx))
	}
	uids, err := region.Each(ctx, c.clusters.directory, "read identity", region.All(), func(ctx context.Context, conn *region.Conn) (types.UID, error) {
		return within(ctx, c.opts.CallTimeout, conn.UID)
	})
	if err != nil {
		return err
	}
	var members []v1alpha1.Member
	for o := range uids.All() {
		members = append(members, v1alpha1.Member{Peer: string(o.Peer), UID: o.Value, State: v1alpha1.PeerActive})
	}
	ring, err := c.clusters.initialised(ctx, members)
	if err != nil {
		return err
	}
	// The first peer's PeerSet decides the ring's ID, so a concurrent InitPeers uses the same ID.
	first, err := c.clusters.directory.Conn(region.PeerName(members[0].Peer))
	if err != nil {
		return err
	}
	ring, err = within(ctx, c.opts.CallTimeout, func(ctx context.Context) (string, error) {
		return c.clusters.createPeerSet(ctx, first, cmp.Or(ring, newRingID()), members)
	})
	if err != nil {
		return explain(first.Peer(), "create the PeerSet", err)
	}
	_, err = region.Each(ctx, c.clusters.directory, "create the PeerSet", region.All(), func(ctx context.Context, conn *region.Conn) (struct{}, error) {
		if conn == first {
			return struct{}{}, nil
		}
		got, err := within(ctx, c.opts.CallTimeout, func(ctx context.Context) (string, error) { return c.clusters.createPeerSet(ctx, conn, ring, members) })
		if err == nil && got != "" && ring != "" && got != ring {
			err = fmt.Errorf("%w: peer %s belongs to ring %s, and %s to ring %s", ErrOtherRing, conn.Peer(), got, first.Peer(), ring)
		}
		return struct{}{}, explain(conn.Peer(), "create the PeerSet", err)
	})
	return err
}

// initialised returns the ring ID in the PeerSets that exist already, or "" if none has one. The
// error wraps ErrMembership if a PeerSet has other members than the given ones, and ErrOtherRing if
// two PeerSets have different ring IDs.
func (cs *clusters) initialised(ctx context.Context, members []v1alpha1.Member) (string, error) {
	present, err := region.Each(ctx, cs.directory, "read the PeerSet", region.All(), func(ctx context.Context, conn *region.Conn) (*readSet, error) {
		set, err := within(ctx, cs.opts.CallTimeout, func(ctx context.Context) (*readSet, error) { return cs.sets.read(ctx, conn) })
		if isAbsent(err) {
			return nil, nil
		}
		return set, explain(conn.Peer(), "read the PeerSet", err)
	})
	if err != nil {
		return "", err
	}
	for o := range present.All() {
		if o.Value != nil {
			if problem := differs(o.Value.PeerSet, string(o.Peer), members); problem != "" {
				return "", fmt.Errorf("%w: peer %s has a PeerSet already, in which %s", ErrMembership, o.Peer, problem)
			}
		}
	}
	return ringOf(present)
}

// ringOf returns the ring of the existing PeerSets, or "".
func ringOf(present region.Results[*readSet]) (string, error) {
	var ring string
	var at region.PeerName
	for o := range present.All() {
		switch {
		case o.Value == nil || o.Value.Spec.Ring == "":
		case ring == "":
			ring, at = o.Value.Spec.Ring, o.Peer
		case o.Value.Spec.Ring != ring:
			return "", fmt.Errorf("%w: peer %s belongs to ring %s, and %s to ring %s", ErrOtherRing, o.Peer, o.Value.Spec.Ring, at, ring)
		}
	}
	return ring, nil
}

// createPeerSet creates the PeerSet of a peer and returns its ring. If another process created the
// PeerSet first, the ring may differ from the given one.
func (cs *clusters) createPeerSet(ctx context.Context, conn *region.Conn, ring string, members []v1alpha1.Member) (string, error) {
	set := v1alpha1.PeerSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PeerSet"},
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PeerSetName},
		Spec:       v1alpha1.PeerSetSpec{Ring: ring, Members: members, Epoch: 1},
	}
	for _, m := range members {
		if m.Peer == string(conn.Peer()) {
			set.Spec.Self = m
		}
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&set)
	if err != nil {
		return "", err
	}
	_, err = conn.Dynamic().Resource(peerSets).Create(ctx, &unstructured.Unstructured{Object: raw}, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		// Another process initialised the ring at the same time.
		got, err := cs.sets.read(ctx, conn)
		if err != nil {
			return "", err
		}
		if problem := differs(got.PeerSet, string(conn.Peer()), members); problem != "" {
			return "", fmt.Errorf("%w: %s", ErrMembership, problem)
		}
		return got.Spec.Ring, nil
	}
	return ring, err
}

// differs describes how a PeerSet differs from the one that InitPeers would create in peer. It
// returns "" if the two have the same name and members.
func differs(set *v1alpha1.PeerSet, peer string, members []v1alpha1.Member) string {
	if set.Spec.Self.Peer != peer {
		return fmt.Sprintf("it is called %s", set.Spec.Self.Peer)
	}
	var problems []string
	for _, want := range members {
		at := slices.IndexFunc(set.Spec.Members, func(m v1alpha1.Member) bool { return m.Peer == want.Peer })
		switch {
		case at < 0:
			problems = append(problems, want.Peer+" is no member")
		case set.Spec.Members[at].UID != want.UID:
			problems = append(problems, fmt.Sprintf("%s is the cluster %s, and is %s now", want.Peer, set.Spec.Members[at].UID, want.UID))
		}
	}
	for _, m := range set.Spec.Members {
		if !slices.ContainsFunc(members, func(want v1alpha1.Member) bool { return want.Peer == m.Peer }) {
			problems = append(problems, m.Peer+" is a member and not configured")
		}
	}
	return strings.Join(problems, ", ")
}
