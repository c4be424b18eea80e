// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-dev/atoll/fanout"
)

// addAccount adds an Account to all peers. Each peer also gets the namespace of the Account.
func (s *story) addAccount(ctx context.Context) error {
	op, err := s.coordinator.Add(ctx, newAccount(s.account), fanout.AddOptions{})
	return s.showAdded(ctx, s.accountObject(), op, err)
}

// addServiceCluster adds a ServiceCluster to the second peer.
func (s *story) addServiceCluster(ctx context.Context) error {
	op, err := s.coordinator.Add(ctx, newServiceCluster(s.account, "db-1"), fanout.AddOptions{Target: s.ring.peer(1), Durable: true})
	return s.showAdded(ctx, s.serviceCluster("db-1"), op, err)
}

func (s *story) showAdded(ctx context.Context, o object, op *fanout.Operation, err error) error {
	if _, doubt := errors.AsType[*fanout.InDoubtError](err); err == nil || doubt {
		s.added = append(s.added, o)
	}
	if err != nil {
		return err
	}
	s.out.note("%s: %s", o, op.State)
	return s.show(ctx, o)
}

// refuseRival makes another coordinator request the same name in the third peer. The two
// coordinators do not know each other.
func (s *story) refuseRival(ctx context.Context) (err error) {
	rival, journal, err := newCoordinator(s.ring, s.path("rival"), fanout.Options{Identity: "rival"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()

	target, o := s.ring.peer(2), s.serviceCluster("db-1")
	_, err = rival.Add(ctx, newServiceCluster(s.account, "db-1"), fanout.AddOptions{Target: target})
	held, refused := errors.AsType[*fanout.HeldError](err)
	switch {
	case err == nil:
		return fmt.Errorf("the rival got %s in %s as well", o, target)
	case !refused:
		return err
	}
	all, err := s.find(ctx, o)
	if err != nil {
		return err
	}
	holder := all[held.Holder].Claim
	if holder == nil {
		return fmt.Errorf("%s is not in %s, which refused it to the rival", o, held.Holder)
	}
	s.out.note("%s for %s: refused", o, target)
	s.out.row("who", "coordinator "+holder.Coordinator+", operation "+held.Operation)
	s.out.row("where", "peer "+string(held.Holder))
	s.out.row("since", held.Since.UTC().Format(time.RFC3339))
	return nil
}
