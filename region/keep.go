// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/internal/logging"
)

// KeepOptions adjust a Kept. The zero value works.
type KeepOptions struct {
	// Wait is how long the source may take for its first Snapshot before the kept one is published. Zero: 10 seconds.
	Wait time.Duration
	// Trust allows content of the kept kubeconfigs that is otherwise rejected. Give the Trust of the source.
	Trust Trust

	// Logger receives log lines. Zero: the logger of Run's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Kept is a Source that keeps the last Snapshot of another Source in a file, with the credentials. A program that starts
// while that source cannot be read, such as a central plane that is down, begins with the kept peers. Use Keep.
type Kept struct {
	source  Source
	path    string
	opts    KeepOptions
	damaged string
	changed chan struct{} // signals that latest is to be saved

	mu     sync.Mutex
	file   *Snapshot // what the file held at the start; nil: nothing
	at     time.Time // when the source published the content of file
	latest *Snapshot // the last Snapshot of the source; nil: none yet
	stale  bool      // the published Snapshot is the one of the file
}

var (
	_ Source    = (*Kept)(nil)
	_ Refresher = (*Kept)(nil)
)

// Keep makes a Source that publishes what source publishes, and keeps it in the file at path. If source has published
// nothing after KeepOptions.Wait, the Snapshot of the file is published, until source publishes one.
//
// A peer whose credentials source cannot read (not one whose credentials are withheld) has the kept ones, if they are
// for the same UID. Credentials that a kubeconfig cannot express, such as those of a program's own transport, are not
// kept: their peer has none until source publishes.
//
// The file has mode 0600 and holds the credentials of all peers in plain text: put it where no other user can read or
// write, for example on a volume in memory. It need not exist, but its directory must. A damaged file is renamed and
// logged. Errors: an argument is missing, the directory does not exist, the file cannot be read or renamed, or a later
// version of this library wrote it. If two processes share a file, the last write wins.
func Keep(source Source, path string, opts KeepOptions) (*Kept, error) {
	switch {
	case source == nil:
		return nil, errors.New("kept peers: the source is nil; give the Source whose peers are kept")
	case path == "":
		return nil, errors.New("kept peers: the path is empty; give that of a file in an existing directory")
	case opts.Wait < 0:
		return nil, errors.New("kept peers: KeepOptions.Wait is negative; give a duration, or zero for 10 seconds")
	case opts.Wait == 0:
		opts.Wait = 10 * time.Second
	}
	k := &Kept{source: source, path: path, opts: opts, changed: make(chan struct{}, 1)}
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("kept peers: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("kept peers: the parent of %s is no directory", path)
	}
	return k, k.read()
}

// read reads the file, if it exists.
func (k *Kept) read() error {
	data, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kept peers: %w", err)
	}
	k.file, k.at, err = decodePeers(data, k.opts.Trust)
	switch {
	case errors.Is(err, errLaterFile):
		return fmt.Errorf("kept peers: %s: %w", k.path, err)
	case err != nil:
		k.damaged = k.path + ".damaged"
		if err := os.Rename(k.path, k.damaged); err != nil {
			return fmt.Errorf("kept peers: %s is damaged: %w", k.path, err)
		}
	}
	return nil
}

// Since returns the time at which the source published the peers that are published now, if they come from the file.
// Otherwise ok is false: the peers are the present ones of the source, or there are none yet.
func (k *Kept) Since() (at time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at, k.stale
}

// Refresh passes the request on to the source, if it is a Refresher.
func (k *Kept) Refresh() {
	if r, ok := k.source.(Refresher); ok {
		r.Refresh()
	}
}

// Run publishes the Snapshots of the source and saves them, and publishes the one of the file if the source does not
// publish in time. It returns what the source's Run returns. A file that cannot be written is logged, and written again
// after a minute and after each change.
func (k *Kept) Run(ctx context.Context, publish func(*Snapshot)) error {
	if publish == nil {
		return errors.New("kept peers: publish is nil: give the func that takes each Snapshot, as a Ring does")
	}
	ctx = logging.Into(ctx, k.opts.Logger, "kept")
	if k.damaged != "" {
		logging.From(ctx).Info("The file of the kept peers is damaged; it was renamed, and is written again", "path", k.path, "renamed", k.damaged)
	}
	background, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { k.fallBack(background, publish) })
	running.Go(func() { k.saving(background) })
	return k.source.Run(ctx, func(s *Snapshot) { k.pass(ctx, s, publish) })
}

// pass publishes a Snapshot of the source.
func (k *Kept) pass(ctx context.Context, s *Snapshot, publish func(*Snapshot)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.file
	if k.latest != nil {
		kept = k.latest
	}
	s = withKept(s, kept)
	if k.stale {
		logging.From(ctx).Info("The source publishes peers again; the kept ones are no longer used")
	}
	k.latest, k.stale = s, false
	publish(s) // does not block
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// fallBack publishes the Snapshot of the file if the source has published nothing in time.
func (k *Kept) fallBack(ctx context.Context, publish func(*Snapshot)) {
	if k.file == nil {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(k.opts.Wait):
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.latest != nil {
		return
	}
	logging.From(ctx).Info("The source has published no peers; the kept ones are used", "path", k.path, "since", k.at, "peers", k.file.Len())
	k.stale = true
	publish(k.file)
}
