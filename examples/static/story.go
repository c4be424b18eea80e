// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// story is the state that the chapters share.
type story struct {
	out   *narrator
	plant *plant
	loops *loops

	mu      sync.Mutex
	engaged map[region.PeerName]bool
}

// tell runs the chapters. It returns at the first that fails.
func (s *story) tell(ctx context.Context) error {
	for _, chapter := range []struct {
		title string
		tell  func(context.Context) error
	}{
		{"The loops find the peers", s.meet},
		{"The peers agree on who they are", s.makeRing},
		{"An Account comes to all peers at once", s.addAccount},
		{"An object of the Account is deleted", s.repair},
		{"A region is claimed, and no other peer gets it", s.claim},
		{"Its ServiceCluster takes its name in all peers", s.addServiceCluster},
		{"A peer is lost", s.lose},
		{"It comes back", s.comeBack},
		{"It leaves for good", s.leave},
	} {
		s.out.chapter(chapter.title)
		if err := chapter.tell(ctx); err != nil {
			return fmt.Errorf("%s: %w", chapter.title, err)
		}
	}
	s.out.say("\nAll loops end with their context.")
	return nil
}

// engage is called for each peer in a goroutine of its own, and runs while the peer is in the file.
// A program starts its own work for a peer here.
func (s *story) engage(ctx context.Context, c *region.Conn) error {
	note := func(is bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.engaged[c.Peer()] = is
	}
	note(true)
	defer note(false)
	<-ctx.Done()
	return nil
}

func (s *story) isEngaged(name region.PeerName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engaged[name]
}

func (s *story) meet(ctx context.Context) error {
	for _, name := range s.plant.names {
		if err := until(ctx, func() (bool, error) { return s.isEngaged(name), nil }); err != nil {
			return err
		}
	}
	return s.health(ctx, func(region.PeerName) region.HealthState { return region.Healthy })
}

// health waits until each peer has the wanted health state, and prints the states.
func (s *story) health(ctx context.Context, want func(region.PeerName) region.HealthState) error {
	for _, name := range s.plant.names {
		conn, err := s.loops.ring.Conn(name)
		if err != nil {
			return err
		}
		if err := until(ctx, func() (bool, error) { return conn.Health().State == want(name), nil }); err != nil {
			return fmt.Errorf("peer %s is %s: %w", name, conn.Health().State, err)
		}
		s.out.row(name, fmt.Sprintf("%-9s", conn.Health().State), fmt.Sprintf("engaged: %t", s.isEngaged(name)))
	}
	return nil
}

func (s *story) makeRing(ctx context.Context) error {
	groups := []string{account.Kind().Resource.Group, fanout.ServiceClusters().Resource.Group, fanoutv1alpha1.GroupVersion.Group}
	_, err := region.Each(ctx, s.loops.ring, "install the types", region.All(), func(ctx context.Context, c *region.Conn) (int, error) {
		installed, err := config.InstallCRDs(ctx, c, config.InstallOptions{Groups: groups})
		return len(installed), err
	})
	if err != nil {
		return err
	}
	if err := s.loops.coordinator.InitPeers(ctx); err != nil {
		return err
	}
	s.out.note("Each holds the types, and a PeerSet that names all three by the UIDs of their clusters.")
	return nil
}

// until polls the function done until done returns true or an error, or ctx ends.
func until(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
