// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
)

// run runs the story on the peers of ring.
func run(ctx context.Context, ring *ring, out *narrator) (err error) {
	begin := time.Now()
	s, err := open(ring, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	for _, chapter := range []struct {
		title string
		tell  func(context.Context) error
		safe  string
	}{
		{"Make the peers a ring", s.makeRing,
			"each peer names all of them, by the UID of its cluster, so a coordinator cannot use half a ring by mistake."},
		{"Add an Account to all peers", s.addAccount,
			"the name is reserved in every peer first; one conditional write commits; the rest can only go forward."},
		{"Add a ServiceCluster to one peer", s.addServiceCluster,
			"creating is atomic per name in an API server, so a guard in each other peer is a lock without a lock service."},
		{"A rival wants the same name elsewhere", s.refuseRival,
			"the two share no log and no leader; the peers themselves refuse the second, and it leaves nothing behind."},
		{"A coordinator is killed just before its commit", s.killBeforeCommit,
			"reserved objects have no effect; recovery never commits an uncommitted operation, and deletes only objects that it read."},
		{"A coordinator is killed just after its commit", s.killAfterCommit,
			"a commit is never undone; any coordinator can finish the operation, and the log only shows that it is open."},
		{"Requests go straight to their region", s.route,
			"each request has an identity of its own, and the peer decides; no request uses the rights of the library."},
		{"Remove everything", s.remove,
			"the object goes last, by UID and resourceVersion, so the name is free nowhere before it is free everywhere."},
	} {
		if err := out.chapter(chapter.title, chapter.safe, func() error { return chapter.tell(ctx) }); err != nil {
			return err
		}
	}
	out.say(fmt.Sprintf("\nAll as promised, in %s.", took(begin)))
	return nil
}

// story is the state that the chapters share.
type story struct {
	ring        *ring
	out         *narrator
	account     string
	dir         string // of the logs
	journal     *wal.File
	coordinator *fanout.Coordinator
	added       []object // not removed yet
	killed      []string // logs of killed coordinators, not recovered yet
}

// open returns a story with its coordinator.
func open(ring *ring, out *narrator) (*story, error) {
	dir, err := os.MkdirTemp("", "atoll-quickstart-")
	if err != nil {
		return nil, err
	}
	s := &story{ring: ring, out: out, account: "acme", dir: dir}
	if ring.lasting() {
		s.account += "-" + rand.String(5)
	}
	s.coordinator, s.journal, err = newCoordinator(ring, s.path("quickstart"), fanout.Options{Identity: "quickstart"})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// path returns the path of a coordinator's log.
func (s *story) path(coordinator string) string { return filepath.Join(s.dir, coordinator+".db") }

// newCoordinator returns a coordinator with a log of its own, which the caller must close.
func newCoordinator(ring *ring, path string, opts fanout.Options) (*fanout.Coordinator, *wal.File, error) {
	journal, err := wal.Open(path, wal.Options{})
	if err != nil {
		return nil, nil, err
	}
	opts.Kinds = account.Kinds()
	coordinator, err := fanout.New(ring, journal, opts)
	if err != nil {
		return nil, nil, errors.Join(err, journal.Close())
	}
	return coordinator, journal, nil
}

// cleanup is the timeout for removing the objects of a failed chapter.
const cleanup = 30 * time.Second

// close removes the objects that a failed chapter left, then the logs.
func (s *story) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanup)
	defer cancel()
	if len(s.added)+len(s.killed) > 0 {
		s.out.note("Removing what the story has left.")
	}
	err := s.removeAll(ctx)
	s.out.flush()
	if err != nil {
		err = fmt.Errorf("not everything could be removed; the logs from which it can be are in %s: %w", s.dir, err)
		return errors.Join(err, s.journal.Close())
	}
	return errors.Join(s.journal.Close(), os.RemoveAll(s.dir))
}
