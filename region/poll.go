// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/internal/logging"
)

const (
	pollInterval    = time.Second
	minReadInterval = 100 * time.Millisecond // minimum time between two reads
)

// files is a Source that polls files. It polls, because notifications miss some ways in which files on mounted volumes
// are replaced, and because there are few files.
type files struct {
	path    string
	trust   Trust
	read    func(*files) ([]Peer, error)
	refresh chan struct{}

	good     map[PeerName]Credentials // the last credentials of each peer that could be read
	reported map[string]string        // by file: the last logged problem
	problems map[string]error         // by file: problems of the current read
}

func newFiles(path string, trust Trust, read func(*files) ([]Peer, error)) (Source, error) {
	if path == "" {
		return nil, errors.New("source: the path is empty")
	}
	return &files{
		path: path, trust: trust, read: read, refresh: make(chan struct{}, 1),
		good: make(map[PeerName]Credentials), reported: make(map[string]string),
	}, nil
}

// Refresh makes Run read the files again at once, but not within minReadInterval of the previous read.
func (f *files) Refresh() {
	select {
	case f.refresh <- struct{}{}:
	default:
	}
}

// Run publishes the peers of the files until ctx ends. It returns an error only if the first read fails.
func (f *files) Run(ctx context.Context, publish func(*Snapshot)) error {
	log := logging.From(ctx).WithValues("path", f.path)
	last, err := f.snapshot(log)
	if err != nil {
		return err
	}
	publish(last)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-f.refresh:
		}
		next, err := f.snapshot(log)
		switch {
		case err != nil:
			f.report(log, f.path, err)
		case !next.equal(last):
			publish(next)
			last = next
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(minReadInterval):
		}
	}
}

func (f *files) snapshot(log logr.Logger) (*Snapshot, error) {
	f.problems = make(map[string]error)
	peers, err := f.read(f)
	var next *Snapshot
	if err == nil {
		next, err = NewSnapshot(peers...)
	}
	for file, problem := range f.problems {
		f.report(log, file, problem)
	}
	for file := range f.reported {
		if f.problems[file] == nil && err == nil {
			delete(f.reported, file)
			log.Info("File can be read again", "file", file)
		}
	}
	return next, err
}

// report logs a problem once, until it changes.
func (f *files) report(log logr.Logger, file string, err error) {
	if f.reported[file] != err.Error() {
		f.reported[file] = err.Error()
		log.Error(err, "File cannot be used; keeping its last good content", "file", file)
	}
}

// credentials returns the credentials in data, or the last good ones if data cannot be used. If there are none, it
// returns credentials that hold the error.
func (f *files) credentials(name PeerName, file string, data []byte, err error) Credentials {
	var creds Credentials
	if err == nil {
		creds, err = ParseKubeconfig(data, f.trust)
	}
	if err == nil {
		f.good[name] = creds
		return creds
	}
	err = fmt.Errorf("kubeconfig of peer %s: %w", name, err)
	f.problems[file] = err
	if good, ok := f.good[name]; ok {
		return good
	}
	return Credentials{err: err}
}

// readBounded reads a regular file, at most maxKubeconfig+1 bytes: the extra byte shows that the file is too large.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("is not a regular file")}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, maxKubeconfig+1))
}
