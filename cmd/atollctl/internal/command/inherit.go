// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
)

// openOwn opens the log that commands write: the log that --wal names, or the log of the peers'
// ring. The common log is the log that all rings shared in the first release. If --wal is not set
// and the common log exists, openOwn makes it the ring's log, uses it at its present path, settles
// its operations, or returns an error: see inherit. If the ring has no log, openOwn also looks for
// the log that the ring had under an earlier ID: see renamed.
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
	if own != place.common() && !begun(own) {
		if file, err := s.renamed(ctx, place, own, opts); file != nil || err != nil {
			return file, err
		}
	}
	return s.openAt(own, create, opts)
}

// renamed looks for the log that this ring had under an earlier ID. (The CRDs of the first release
// drop the ID of a ring, and the next sweep gives the ring another ID.) The log must have an open
// operation that began under the earlier ID, and CheckLog must confirm that the log belongs to this
// ring. renamed makes this log the ring's log: see takeOver. It returns the log only if the command
// must use the log at its present path. renamed changes no log of another ring.
func (s *session) renamed(ctx context.Context, place logs, own string, opts wal.Options) (*wal.File, error) {
	opts.Existing, opts.LockTimeout, opts.CompactAbove = true, -1, -1
	for _, path := range place.existing() {
		ring := filepath.Base(filepath.Dir(path))
		if path == place.common() || path == own || !exists(path) {
			continue
		}
		file, err := wal.Open(path, opts)
		if err != nil {
			continue // a command in the ring of this log reports the error
		}
		var stays, same bool
		err = s.with(file, func(c *fanout.Coordinator) error {
			same = begunIn(ctx, file, ring) && c.Identity().CheckLog(ctx) == nil
			return nil
		})
		if err == nil && same {
			stays, err = s.takeOver(ctx, file, own, earlier{path, "whose ring has another ID by now"})
		}
		if stays {
			return file, nil
		}
		if err = errors.Join(err, file.Close()); err != nil || same {
			return nil, err
		}
	}
	return nil, nil
}

// begunIn reports whether a log has an open operation that began in the ring with this ID.
func begunIn(ctx context.Context, log wal.Log, ring string) bool {
	for entry, err := range log.Open(ctx) {
		if about, unread := fanout.Describe(entry); err == nil && unread == nil && about.Ring == ring {
			return true
		}
	}
	return false
}

// earlier is the path of a log that may become the log of the ring, and a description of the log.
type earlier struct{ path, which string }

// inherit takes over the common log before the caller opens the ring's own log, whose path is own:
// see takeOver. It returns the common log only if that log stays at its path and the command must
// use it there. If only a damaged common log is left, and the ring has its own log, inherit prints
// a warning.
func (s *session) inherit(ctx context.Context, own, common string, opts wal.Options) (*wal.File, error) {
	if !exists(common) && begun(own) {
		s.warn("a damaged log was set aside beside %s: save what can be read with %q, or move it away", common, s.program+" wal salvage")
		return nil, nil
	}
	opts.Existing = true
	file, err := s.openAt(common, true, opts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // another process has just moved the common log
	}
	if err != nil {
		return nil, err
	}
	stays, err := s.takeOver(ctx, file, own, earlier{common, "which all rings used before"})
	if stays {
		return file, nil
	}
	return nil, errors.Join(err, file.Close())
}

// takeOver moves an earlier log to own, the path of the ring's log. If a log exists at own,
// takeOver settles the operations of the earlier log instead. It returns true if the earlier log
// stays at its path and the command must use it there: the ring of the log is not known yet, or the
// log is a link or cannot be moved. It returns an error if the log has an operation of another
// ring.
func (s *session) takeOver(ctx context.Context, file *wal.File, own string, old earlier) (stays bool, err error) {
	var foreign, unclear error
	err = s.with(file, func(c *fanout.Coordinator) error {
		err := c.Identity().CheckLog(ctx)
		switch {
		case is(err, fanout.ErrOtherLog):
			foreign = err
		case begun(own):
			return s.settleAll(ctx, c, file, old.path)
		default:
			unclear = err
		}
		return nil
	})
	switch {
	case err != nil:
		return false, err
	case foreign != nil:
		return false, &problem{code: exitInput, err: fmt.Errorf("the log %s, %s, is not of this ring: %w", old.path, old.which, foreign),
			remedy: fmt.Sprintf("see it with %q; settle it with %q and the peers of its ring, once", s.program+" wal list --wal "+old.path, s.program+" wal recover --wal "+old.path)}
	case begun(own):
		return false, nil
	case unclear != nil:
		s.warn("the log %s stays there until its ring is known: %s", old.path, oneLine(unclear))
		return true, nil
	case linked(old.path):
		return true, nil // a user made the link: keep it
	}
	err = file.Move(ctx, own)
	_, locked := find[*wal.LockedError](err)
	switch {
	case err == nil:
		fmt.Fprintf(s.errOut, "the log %s, %s, is now %s\n", old.path, old.which, own)
		return false, nil
	case errors.Is(err, fs.ErrExist):
		return s.takeOver(ctx, file, own, old) // another process has just created the ring's log
	case locked, ctx.Err() != nil:
		return false, err
	}
	s.warn("the log %s stays there: %s", old.path, oneLine(err))
	return true, nil
}

// settleAll settles the open operations of an earlier log, and prints the result of each.
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
