// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// errNothingSaved is Restore's answer if Save was not called.
var errNothingSaved = errors.New("nothing was saved")

// Save keeps the data as it is now, for Restore, in place of what was saved before.
// The plane is down for as long as a Restart takes.
func (p *Plane) Save(ctx context.Context) error {
	return p.inTurn(ctx, "save", func() error {
		p.end(ctx)
		if err := os.RemoveAll(p.saved()); err != nil {
			return err
		}
		if err := os.CopyFS(p.saved(), os.DirFS(p.data())); err != nil {
			return err
		}
		return p.begin(ctx)
	})
}

// Restore kills the plane and starts it with the data that Save kept: all that was
// written since is lost, and resourceVersions are given out again, as after the
// restore of a backup by hand.
func (p *Plane) Restore(ctx context.Context) error {
	return p.inTurn(ctx, "restore", func() error {
		if _, err := os.Stat(p.saved()); errors.Is(err, os.ErrNotExist) {
			return errNothingSaved
		}
		p.killProcesses()
		if err := os.RemoveAll(p.data()); err != nil {
			return err
		}
		if err := os.CopyFS(p.data(), os.DirFS(p.saved())); err != nil {
			return err
		}
		return p.begin(ctx)
	})
}

func (p *Plane) data() string  { return filepath.Join(p.dir, "etcd-data") }
func (p *Plane) saved() string { return filepath.Join(p.dir, "etcd-saved") }

// end stops what runs in an orderly way.
func (p *Plane) end(ctx context.Context) {
	for _, process := range slices.Backward(p.processes) {
		process.terminate(ctx)
	}
	p.processes = nil
}

// begin starts all processes, or leaves none running.
func (p *Plane) begin(ctx context.Context) error {
	if err := p.startProcesses(ctx); err != nil {
		p.killProcesses()
		return err
	}
	return nil
}
