// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/atomicfile"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "two"} {
		require.NoError(t, atomicfile.Replace(path, []byte(text)))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(data))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	// A file that cannot be replaced stays as it is, and no temporary file remains.
	blocked := filepath.Join(dir, "blocked")
	require.NoError(t, os.MkdirAll(filepath.Join(blocked, "inside"), 0o700))
	require.Error(t, atomicfile.Replace(blocked, nil))
	require.Error(t, atomicfile.Replace(filepath.Join(dir, "none", "file"), nil))
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{blocked, path}, left)
}
