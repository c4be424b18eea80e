// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// groups returns the API groups whose types the story needs.
func groups() []string {
	return []string{
		account.Kind().Resource.Group,
		fanout.ServiceClusters().Resource.Group,
		fanoutv1alpha1.GroupVersion.Group,
	}
}

// makeRing installs the types in each peer and writes the PeerSets.
func (s *story) makeRing(ctx context.Context) error {
	installed, err := region.Each(ctx, s.ring, "install the types", region.All(),
		func(ctx context.Context, c *region.Conn) ([]config.Installed, error) {
			return config.InstallCRDs(ctx, c, config.InstallOptions{Groups: groups()})
		})
	if err != nil {
		return err
	}
	if err := s.coordinator.InitPeers(ctx); err != nil {
		return err
	}
	outcomes := map[region.PeerName]region.Outcome[[]config.Installed]{}
	for outcome := range installed.All() {
		outcomes[outcome.Peer] = outcome
	}
	for _, file := range s.ring.files {
		conn, err := s.ring.Conn(file.Peer)
		if err != nil {
			return err
		}
		uid, err := conn.UID(ctx)
		if err != nil {
			return err
		}
		s.out.row(file.Peer, "cluster "+string(uid)[:8], summary(outcomes[file.Peer].Value), "PeerSet lists "+s.ring.String())
	}
	return nil
}

// summary describes how many CRDs were installed.
func summary(installed []config.Installed) string {
	fresh := 0
	for _, crd := range installed {
		if crd.Change != config.Unchanged {
			fresh++
		}
	}
	return fmt.Sprintf("%d types, %d new", len(installed), fresh)
}
