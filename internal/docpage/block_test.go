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
	require.NoError(t, os.WriteFile(path, []byte("# a\n## b\n\n```sh\nls\n\npwd\n```\nmark\n```\nx\n```\n"), 0o600))
	require.Equal(t, []Block{
		{Line: 4, Language: "sh", Heading: "b", Between: "# a\n## b\n", Text: "ls\n\npwd\n"},
		{Line: 10, Before: "mark", Heading: "b", Between: "mark\n", Text: "x\n"},
	}, Blocks(t, path))
}
