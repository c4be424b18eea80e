// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/atoll-dev/atoll/internal/e2e/build"
)

// errNothingSaved is the error of Restore and RestoreSnapshot if Save was not called.
var errNothingSaved = errors.New("nothing was saved")

// Save keeps the present data for Restore, and drops the data of an earlier Save. The plane is down
// for as long as a Restart takes.
func (p *Plane) Save(ctx context.Context) error {
	return p.inTurn(ctx, "save", func() error {
		for _, process := range p.processes[1:] {
			process.kill() // on SIGTERM an API server would wait for its watches
		}
		p.processes = p.processes[:1]
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

// Restore kills the plane and starts it with the data that Save kept. All later writes are lost,
// and their resourceVersions are used again, as after a manual restore of a backup.
func (p *Plane) Restore(ctx context.Context) error {
	return p.restore(ctx, func() error { return os.CopyFS(p.data(), os.DirFS(p.saved())) })
}

// RestoreSnapshot restores the saved data as an administrator of etcd does: with etcdutl snapshot
// restore, into a new cluster of one member. If bump is not zero, new revisions start at the latest
// saved revision plus bump, and all earlier revisions count as compacted.
func (p *Plane) RestoreSnapshot(ctx context.Context, bump uint64) error {
	programs, err := build.Programs(ctx, build.Etcdutl)
	if err != nil {
		return err
	}
	return p.restore(ctx, func() error {
		cmd := exec.CommandContext(ctx, programs[build.Etcdutl], restoreArguments(p.saved(), bump)...)
		cmd.Dir = p.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", build.Etcdutl, err, out)
		}
		return nil
	})
}

// restoreArguments returns the arguments that make a data directory from a saved database file.
// Unlike a snapshot of a running server, the file has no hash.
func restoreArguments(saved string, bump uint64) []string {
	args := []string{
		"snapshot", "restore", filepath.Join(saved, "member", "snap", "db"),
		"--skip-hash-check",
		"--data-dir=etcd-data",
		"--initial-advertise-peer-urls=" + etcdPeerURL,
		"--initial-cluster=default=" + etcdPeerURL,
	}
	if bump > 0 {
		args = append(args, "--mark-compacted", "--bump-revision="+strconv.FormatUint(bump, 10))
	}
	return args
}

// restore kills the plane, calls put to replace the plane's data, and starts the plane.
func (p *Plane) restore(ctx context.Context, put func() error) error {
	return p.inTurn(ctx, "restore", func() error {
		if _, err := os.Stat(p.saved()); errors.Is(err, os.ErrNotExist) {
			return errNothingSaved
		}
		p.killProcesses()
		if err := os.RemoveAll(p.data()); err != nil {
			return err
		}
		if err := put(); err != nil {
			return err
		}
		return p.begin(ctx)
	})
}

func (p *Plane) data() string  { return filepath.Join(p.dir, "etcd-data") }
func (p *Plane) saved() string { return filepath.Join(p.dir, "etcd-saved") }

// end stops all processes in an orderly way.
func (p *Plane) end(ctx context.Context) {
	for _, process := range slices.Backward(p.processes) {
		process.terminate(ctx)
	}
	p.processes = nil
}

// begin starts all processes. If it fails, none of them runs.
func (p *Plane) begin(ctx context.Context) error {
	if err := p.startProcesses(ctx); err != nil {
		p.killProcesses()
		return err
	}
	return nil
}
