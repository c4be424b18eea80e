// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/wal"
)

// loops holds the loops that a program embeds.
type loops struct {
	ring        *region.Ring
	coordinator *fanout.Coordinator
	accounts    *account.Controller
	claims      *claim.Arbiter
	journal     *wal.File
}

// newLoops makes the loops for the peers of the file. It starts no goroutine and sends no request.
func newLoops(file, dir string) (*loops, error) {
	source, err := region.FromFile(file, region.Trust{})
	if err != nil {
		return nil, err
	}
	// Short intervals for the story: programs use the zero values.
	probe := region.ProbeOptions{Interval: 300 * time.Millisecond, Timeout: 5 * time.Second, MaxBackoff: 300 * time.Millisecond}
	l := &loops{}
	if l.ring, err = region.NewRing(source, region.Options{Probe: probe}); err != nil {
		return nil, err
	}
	if l.accounts, err = account.NewController(l.ring, account.ControllerOptions{}); err != nil {
		return nil, err
	}
	// Without a central plane the fan-out protocol decides which peer serves a region. The Arbiter
	// reports the decision in the statuses of claims and ServiceClusters.
	if l.claims, err = claim.New(nil, l.ring, claim.Options{}); err != nil {
		return nil, err
	}
	if l.journal, err = wal.Open(filepath.Join(dir, "wal.db"), wal.Options{}); err != nil {
		return nil, err
	}
	l.coordinator, err = fanout.New(l.ring, l.journal, fanout.Options{
		Identity: "static", Kinds: append(account.Kinds(), claim.Kind()), SweepEvery: time.Second,
	})
	if err != nil {
		_ = l.journal.Close()
		return nil, err
	}
	return l, nil
}

// run starts the loops, runs engaged for each peer while the peer is in the file, and runs main.
// When main returns, run ends the loops and all calls of engaged, waits for them, and returns.
func (l *loops) run(ctx context.Context, engaged func(context.Context, *region.Conn) error, main func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	group, ctx := errgroup.WithContext(ctx)
	for _, start := range []func(context.Context) error{
		l.ring.Start,
		l.coordinator.Start,
		l.accounts.Start,
		l.claims.Start,
		func(ctx context.Context) error { return region.Engage(ctx, l.ring, engaged) },
	} {
		group.Go(func() error { return start(ctx) })
	}
	group.Go(func() error {
		defer end()
		return main(ctx)
	})
	return group.Wait()
}
