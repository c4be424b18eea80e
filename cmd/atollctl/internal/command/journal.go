// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
)

// named reports whether --wal names a log that must exist, because --create-wal is not set. Without
// this rule a mistyped name would go unnoticed: a changing command would begin an empty log
// although another log has open operations, and "wal recover" would recover nothing.
func (s *session) named() bool { return s.wal != "" && !s.createWAL }

// openAt opens the log at path. It creates a missing log only if create is set, and --wal does not
// name a log that must exist.
func (s *session) openAt(path string, create bool, opts wal.Options) (*wal.File, error) {
	switch {
	case begun(path):
	case s.named():
		return nil, badInput("correct --wal, or begin a log there with --create-wal", "%w %s", errNoSuchLog, path)
	case !create:
		return nil, badInput("name the one that was written, with --wal FILE", "%w %s", errNoSuchLog, path)
	}
	file, err := wal.Open(path, opts)
	if err != nil {
		remedy := ""
		if damaged, ok := find[*wal.CorruptError](err); ok && damaged.SetAside != "" {
			remedy = fmt.Sprintf("put a backup in its place, or what %q saves of it; or run %q and then %q", s.program+" wal salvage "+damaged.SetAside, s.program+" wal recover --accept-loss", s.program+" audit --repair")
		}
		return nil, badInput(remedy, "open log: %w", err)
	}
	return file, nil
}

var errNoSuchLog = errors.New("there is no log")

// begun reports whether a log exists at path, or whether the directory of path has a damaged log
// that package wal renamed from path.
func begun(path string) bool {
	if exists(path) {
		return true
	}
	entries, _ := os.ReadDir(filepath.Dir(path)) // an unreadable directory has no usable log
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), filepath.Base(path)+".damaged-")
	})
}

// coordinate runs f with a Coordinator that stores its operations in the log.
func (s *session) coordinate(ctx context.Context, f func(*fanout.Coordinator) error) (err error) {
	return s.coordinateWith(ctx, true, wal.Options{}, f)
}

func (s *session) coordinateWith(ctx context.Context, create bool, opts wal.Options, f func(*fanout.Coordinator) error) (err error) {
	if _, err := s.connect(ctx); err != nil {
		return err
	}
	log, done, err := s.open(ctx, create, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return s.with(log, f)
}

// observe runs f with a Coordinator that has no log, so it cannot begin an operation. It can read,
// write PeerSets, and sweep.
func (s *session) observe(ctx context.Context, f func(*fanout.Coordinator) error) error {
	if _, err := s.connect(ctx); err != nil {
		return err
	}
	return s.with(noLog{}, f)
}

func (s *session) with(log wal.Log, f func(*fanout.Coordinator) error) error {
	opts := fanout.Options{Kinds: account.Kinds(), Cleanup: s.cleanup, LeaseTimeout: s.lease}
	opts.Observer = &fanout.Observer{}
	if s.verbose {
		opts.Observer.Step = s.step
	}
	c, err := fanout.New(s.peers.Directory, log, opts)
	if err != nil {
		return err
	}
	return s.watched(opts.Observer, func() error { return f(c) })
}

// step prints a line for each command of the protocol that has ended.
func (s *session) step(_ context.Context, e fanout.StepEvent) {
	if !e.Done {
		return
	}
	place := string(e.Peer)
	if place == "" {
		place = "log"
	}
	line := fmt.Sprintf("step: %s %s %s %s: %s", place, e.Verb, e.Kind.Kind, strings.TrimPrefix(e.Key.String(), "/"), or(e.Code))
	if e.Err != nil {
		line += ": " + oneLine(e.Err)
	}
	s.steps.Lock() // steps of several peers end concurrently
	defer s.steps.Unlock()
	fmt.Fprintln(s.errOut, line)
}

// noLog is the log of commands that begin no operation. It is always empty.
type noLog struct{}

var errNoLog = errors.New("this command has no log, and begins no operation")

func (noLog) Shared() bool                                          { return false }
func (noLog) Begin(context.Context, wal.Entry) (wal.Entry, error)   { return wal.Entry{}, errNoLog }
func (noLog) Advance(context.Context, wal.Entry) (wal.Entry, error) { return wal.Entry{}, errNoLog }
func (noLog) End(context.Context, wal.Entry, []byte) error          { return errNoLog }
func (noLog) Decision(context.Context, string) (wal.Decision, error) {
	return wal.Decision{}, wal.ErrNoDecisions
}
func (noLog) Open(context.Context) iter.Seq2[wal.Entry, error] {
	return func(func(wal.Entry, error) bool) {}
}
func (noLog) Find(context.Context, string) (wal.Entry, error) { return wal.Entry{}, wal.ErrNotFound }
