// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/shard"
)

// membership makes every peer with a Peer object a member of the ring. The first peers become
// members together, later peers one by one. membership never removes a member: a person does so
// (atollctl peer leave) before deleting the Peer.
type membership struct {
	ring        region.Directory
	coordinator *fanout.Coordinator
	shard       *shard.Members
	every       time.Duration
}

// membershipKey is a key for the shards: only the replica that owns it changes the membership.
const membershipKey = "membership"

// Start works until ctx ends. It retries failures.
func (m *membership) Start(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	tick := time.NewTicker(m.every)
	defer tick.Stop()
	for ctx.Err() == nil {
		if m.shard.Owns(membershipKey) && m.ring.Snapshot().Len() > 0 {
			if err := m.admit(ctx); err != nil && ctx.Err() == nil {
				log.Info("Not every peer is a member yet", "reason", err.Error())
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// admit makes each reachable peer without a PeerSet a member of the ring.
func (m *membership) admit(ctx context.Context) error {
	sets := fanoutv1alpha1.GroupVersion.WithResource("peersets")
	present, err := region.Each(ctx, m.ring, "read the PeerSet", region.BestEffort(), func(ctx context.Context, c *region.Conn) (bool, error) {
		_, err := c.Dynamic().Resource(sets).Get(ctx, fanoutv1alpha1.PeerSetName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	var members, newcomers []region.PeerName
	for outcome := range present.All() {
		switch {
		case outcome.Err != nil:
		case outcome.Value:
			members = append(members, outcome.Peer)
		default:
			newcomers = append(newcomers, outcome.Peer)
		}
	}
	switch {
	case len(newcomers) == 0:
		return present.Err()
	case len(members) == 0 && !present.Complete():
		return present.Err() // an unreachable peer may already have a ring
	case len(members) == 0:
		return m.coordinator.InitPeers(ctx)
	}
	errs := []error{present.Err()}
	for _, name := range newcomers {
		_, err := m.coordinator.Join(ctx, name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
