// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atoll_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

var howto = regexp.MustCompile(`^\[[a-z_]+\.go\]\(\.\./(examples/howto/[a-z_]+\.go)\).*:$`)

// Each block of Go code of these pages is a whole file of examples/howto, whose tests run it. The line before the block
// names the file. The pages show all files of the package.
func TestHowToPages(t *testing.T) {
	shown := map[string]bool{}
	for _, page := range []string{"extend.md", "embed.md", "testing.md"} {
		path := filepath.Join("docs", page)
		lines := strings.Split(read(t, path), "\n")
		for _, b := range docpage.Blocks(t, path) {
			if b.Language != "go" {
				continue
			}
			require.Greater(t, b.Line, 2, "%s:%d", path, b.Line)
			file := howto.FindStringSubmatch(lines[b.Line-3]) // an empty line is between the name and the block
			require.NotNil(t, file, "%s:%d: the line before the code must name its file", path, b.Line)
			_, code, ok := strings.Cut(read(t, file[1]), "\n\n") // the licence
			require.True(t, ok)
			require.Equal(t, code, b.Text, "%s:%d must show %s, as it is", path, b.Line, file[1])
			shown[filepath.Base(file[1])] = true
		}
	}
	sources, err := filepath.Glob("examples/howto/*_test.go")
	require.NoError(t, err)
	require.Len(t, shown, len(sources), "the pages show each file of examples/howto")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
