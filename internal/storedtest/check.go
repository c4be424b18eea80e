// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package storedtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Check compares the names in the file list with the names in now. It fails the test for each name that only one of
// them has. With ATOLL_STORED=add it adds the names that the file lacks to the file instead. The test must run in the
// directory of its package.
func Check(t *testing.T, list string, now []string) {
	t.Helper()
	slices.Sort(now)
	now = slices.Compact(now)
	adds := os.Getenv("ATOLL_STORED") == "add"
	content, err := os.ReadFile(list)
	if !adds || !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	known := strings.FieldsFunc(string(content), func(r rune) bool { return r == '\n' })
	all := slices.Clone(known)
	for _, name := range known {
		if !slices.Contains(now, name) {
			t.Errorf("%s is stored by installations and is missing now: keep it, or read both the old and the new name and remove its line from %s", name, list)
		}
	}
	for _, name := range now {
		switch {
		case slices.Contains(known, name):
		case adds:
			all = append(all, name)
		default:
			t.Errorf("%s is new: run the test with ATOLL_STORED=add if it is meant to be stored for ever", name)
		}
	}
	if len(all) == len(known) {
		return
	}
	slices.Sort(all)
	require.NoError(t, os.MkdirAll(filepath.Dir(list), 0o755))
	require.NoError(t, os.WriteFile(list, []byte(strings.Join(all, "\n")+"\n"), 0o644))
}
