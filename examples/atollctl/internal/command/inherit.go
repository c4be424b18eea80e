// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
)

// openOwn opens the log that commands write: the one that --wal names, or that of the ring of
// the peers. The common log of the first release is never left behind: it becomes the ring's
// log, or its operations are settled, or it is refused.
func (s *session) openOwn(ctx context.Context, create bool, opts wal.Options) (*wal.File, error) {
	if err := s.ofFile(); err != nil {
		return nil, err
	}
	if s.wal != "" {
		return s.openAt(s.wal, create, opts)
	}
	place, err := s.logs()
	if err != nil {
		return nil, err
	}
	ring, err := s.ring(ctx)
	if err != nil {
		return nil, err
	}
	own, err := place.of(ring)
	if err != nil {
		return nil, err
	}
	if common := place.common(); own != common && begun(common) {
		if file, err := s.inherit(ctx, own, common, opts); file != nil || err != nil {
			return file, err
		}
	}
	return s.openAt(own, create, opts)
}

// inherit deals with the common log before the ring's own is opened. It returns the common log
// if that must stay where it is, and the ring has no other.
func (s *session) inherit(ctx context.Context, own, common string, opts wal.Options) (*wal.File, error) {
	if !exists(common) && begun(own) {
		s.warn("a damaged log was set aside beside %s: save what can be read with %q, or move it away", common, s.program+" wal salvage")
		return nil, nil
	}
	opts.Existing = true
	file, err := s.openAt(common, true, opts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // another process has just moved it
	}
	if err != nil {
		return nil, err
	}
	stays, err := s.takeOver(ctx, file, own, common)
	if stays {
		return file, nil
	}
	return nil, errors.Join(err, file.Close())
}

// takeOver makes the common log the ring's own, or settles its operations if the ring has one.
// It reports whether the log stays where it is and is to be used there.
func (s *session) takeOver(ctx context.Context, file *wal.File, own, common string) (stays bool, err error) {
	var foreign, unclear error
	err = s.with(file, func(c *fanout.Coordinator) error {
		err := c.CheckLog(ctx)
		switch {
		case is(err, fanout.ErrOtherLog):
			foreign = err
		case begun(own):
			return s.settleAll(ctx, c, file, common)
		default:
			unclear = err
		}
		return nil
	})
	switch {
	case err != nil:
		return false, err
	case foreign != nil:
		return false, &problem{code: exitInput, err: fmt.Errorf("the log %s, which all rings used before, is not of this ring: %w", common, foreign),
			remedy: fmt.Sprintf("see it with %q; settle it with %q and the peers of its ring, once", s.program+" wal list --wal "+common, s.program+" wal recover --wal "+common)}
	case begun(own):
		return false, nil
	case unclear != nil:
		s.warn("the log %s stays there until it is known which ring it is of: %s", common, oneLine(unclear))
		return true, nil
	case linked(common):
		return true, nil // a person chose where it is
	}
	err = file.Move(ctx, own)
	_, locked := find[*wal.LockedError](err)
	switch {
	case err == nil:
		fmt.Fprintf(s.errOut, "the log %s, which all rings used before, is now %s\n", common, own)
		return false, nil
	case errors.Is(err, fs.ErrExist):
		return s.takeOver(ctx, file, own, common) // another process has just begun it
	case locked, ctx.Err() != nil:
		return false, err
	}
	s.warn("the log %s stays there: %s", common, oneLine(err))
	return true, nil
}

// settleAll settles the operations of the common log and reports each.
func (s *session) settleAll(ctx context.Context, c *fanout.Coordinator, file *wal.File, common string) error {
	for entry, err := range file.Open(ctx) {
		if err != nil {
			s.warn("%s", oneLine(err))
			continue
		}
		op, err := c.Outcome(ctx, entry.ID)
		if op == nil || op.State == fanout.InDoubt {
			s.warn("operation %s of the log %s is still open: %s; run %q", entry.ID, common, oneLine(err), s.program+" wal recover --wal "+common)
			continue
		}
		fmt.Fprintf(s.errOut, "operation %s of the log %s is settled: %s\n", entry.ID, common, op.State)
	}
	return ctx.Err()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func linked(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
