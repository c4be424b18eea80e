// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// makeDirs creates dir and its missing parents. It syncs the parent of each directory that it creates.
func makeDirs(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDirs(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// asideName returns an unused name, to which a damaged log at path can be renamed.
func asideName(path string) string {
	stamp := path + ".damaged-" + time.Now().UTC().Format("20060102T150405Z")
	name := stamp
	for n := 1; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d", stamp, n)
	}
}

// setAside renames a damaged log and returns its new name. The caller holds the lock.
func setAside(path string) (string, error) {
	name := asideName(path)
	if err := os.Rename(path, name); err != nil {
		return "", err
	}
	return name, syncDir(filepath.Dir(path))
}

// lastSetAside returns the newest damaged log that was renamed from path, or "" if there is no such
// log.
func lastSetAside(path string) (string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	prefix := filepath.Base(path) + ".damaged-"
	var names []string
	for _, e := range entries {
		if n := e.Name(); len(n) > len(prefix) && n[:len(prefix)] == prefix {
			names = append(names, filepath.Join(filepath.Dir(path), n))
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return slices.Max(names), nil
}

func boltOptions(timeout time.Duration, maxSize int64) *bbolt.Options {
	return &bbolt.Options{
		Timeout:         max(timeout, time.Millisecond), // zero means no timeout
		FreelistType:    bbolt.FreelistMapType,
		NoFreelistSync:  true,     // bbolt rebuilds the list at open: this leaves fewer pages that can be damaged
		InitialMmapSize: 16 << 20, // a large first map, since remapping a grown file waits for readers
		MaxSize:         int(maxSize),
		NoStatistics:    true,
	}
}
