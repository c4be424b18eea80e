// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

const lost region.PeerName = "ap-south"

// lose cuts one peer off the network. An operation that needs all peers is aborted. A read of all
// peers names the peer that did not answer.
func (s *story) lose(ctx context.Context) error {
	s.plant.servers[lost].Partition(true)
	err := s.health(ctx, func(name region.PeerName) region.HealthState {
		if name == lost {
			return region.Unhealthy
		}
		return region.Healthy
	})
	if err != nil {
		return err
	}
	_, err = s.loops.coordinator.Add(ctx, newAccount("acme"), fanout.AddOptions{})
	if !errors.Is(err, fanout.ErrAborted) {
		return fmt.Errorf("an Account was added without a peer: %w", err)
	}
	s.out.note("Account acme: not added. It would have to be in all peers, and %s does not answer.", lost)
	results, err := region.Each(ctx, s.loops.ring, "list Accounts", region.BestEffort(), func(ctx context.Context, c *region.Conn) (int, error) {
		list, err := c.Dynamic().Resource(account.Kind().Resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		return len(list.Items), nil
	})
	if err != nil {
		return err
	}
	s.out.note("Accounts, as far as can be seen (complete: %t):", results.Complete())
	for outcome := range results.All() {
		if errors.Is(outcome.Err, region.ErrUnavailable) {
			s.out.row(outcome.Peer, "unknown")
			continue
		} else if outcome.Err != nil {
			return outcome.Err
		}
		s.out.row(outcome.Peer, fmt.Sprint(outcome.Value))
	}
	return nil
}

// comeBack reconnects the peer, and shows that nothing has to be restarted: while the peer was lost,
// the loops kept retrying, and the call of engage for the peer did not return.
func (s *story) comeBack(ctx context.Context) error {
	s.plant.servers[lost].Partition(false)
	if err := s.health(ctx, func(region.PeerName) region.HealthState { return region.Healthy }); err != nil {
		return err
	}
	op, err := s.loops.coordinator.Add(ctx, newAccount("acme"), fanout.AddOptions{})
	if err != nil {
		return err
	}
	s.out.note("Account acme: %s", op.State)
	return nil
}

// leave removes the peer. First the other peers remove it from the ring; then the file no longer
// lists it.
func (s *story) leave(ctx context.Context) error {
	if _, err := s.loops.coordinator.Leave(ctx, lost); err != nil {
		return err
	}
	if err := s.plant.configure("eu-west", "us-east"); err != nil {
		return err
	}
	if err := until(ctx, func() (bool, error) { return !s.isEngaged(lost), nil }); err != nil {
		return err
	}
	s.out.note("%s: engaged: false, by the file alone", lost)
	if err := s.health(ctx, func(region.PeerName) region.HealthState { return region.Healthy }); err != nil {
		return err
	}
	op, err := s.loops.coordinator.Add(ctx, newAccount("umbrella"), fanout.AddOptions{})
	if err != nil {
		return err
	}
	s.out.note("Account umbrella: %s", op.State)
	return nil
}
