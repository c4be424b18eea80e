// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
)

// Interval is the time between two reads.
const Interval = time.Second

// Files reads files that belong together, and applies their contents.
type Files struct {
	name  string
	paths []string
	apply func(contents ...[]byte) error
	last  [][]byte
	fault string // the last reported fault
}

// New reads the files at paths and calls apply with their contents. It returns the error of reading or of apply. name
// says in logs what the files are.
//
// A Files polls, because notifications miss some ways in which files on mounted volumes are replaced.
func New(name string, apply func(contents ...[]byte) error, paths ...string) (*Files, error) {
	f := &Files{name: name, paths: paths, apply: apply}
	_, err := f.read()
	return f, err
}

// Start reads the files every second until ctx ends. It calls apply with all contents if one of them differs from those
// applied last. If reading or apply fails, the contents applied last stay in use, and Start tries again every second. It
// logs an error once, until the error changes or the files can be used again.
func (f *Files) Start(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx).WithName("reload")
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		changed, err := f.read()
		switch {
		case err != nil && err.Error() != f.fault:
			log.Error(err, "Files cannot be used; what they held before stays in use", "files", f.name)
			f.fault = err.Error()
		case err == nil && (changed || f.fault != ""):
			log.Info("Files were read again", "files", f.name)
			f.fault = ""
		}
	}
}

// read reads the files, and applies their contents if one of them has changed.
func (f *Files) read() (changed bool, err error) {
	contents := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		if contents[i], err = os.ReadFile(path); err != nil {
			return false, fmt.Errorf("%s: %w", f.name, err)
		}
		changed = changed || f.last == nil || !bytes.Equal(contents[i], f.last[i])
	}
	if !changed {
		return false, nil
	}
	if err := f.apply(contents...); err != nil {
		return false, fmt.Errorf("%s: %w", f.name, err)
	}
	f.last = contents
	return true, nil
}
