// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"os"
)

// mend rewrites a log with damaged names: it takes the names from the records. It keeps every pair; a damaged record
// keeps the name that it has in the file. It leaves the old file beside the new one. mend returns the findings about
// the new file, plus one that names the old file. The caller holds the lock.
func mend(path string, old findings) (findings, error) {
	aside := asideName(path)
	if err := os.Link(path, aside); err != nil {
		return old, err
	}
	if _, err := rewrite(path); err != nil {
		return old, errors.Join(err, dropLink(path, aside))
	}
	found, err := inspectPath(path)
	found.add(&CorruptError{Path: path, Err: fmt.Errorf("%d names were damaged and restored from their entries, the old file is %s", len(old.damage), aside)})
	return found, err
}

// dropLink removes the file aside if it is still the same file as path.
func dropLink(path, aside string) error {
	a, errA := os.Stat(path)
	b, errB := os.Stat(aside)
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		return nil
	}
	return os.Remove(aside)
}
