// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package docpage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte("# a\n\n```sh\nls\n\npwd\n```\nmark\n```\nx\n```\n"), 0o600))
	require.Equal(t, []Block{
		{Line: 3, Language: "sh", Text: "ls\n\npwd\n"},
		{Line: 9, Before: "mark", Text: "x\n"},
	}, Blocks(t, path))
}
