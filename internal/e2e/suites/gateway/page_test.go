// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// requirePage runs the commands of docs/kubectl.md with the address of the replica.
func requirePage(t *testing.T, r *replica, c caller) {
	t.Helper()
	ran := 0
	for _, b := range docpage.Blocks(t, "../../../../docs/kubectl.md") {
		if b.Language != "sh" {
			continue
		}
		for line := range strings.Lines(b.Text) {
			command, _, _ := strings.Cut(line, "#")
			args := strings.Fields(strings.ReplaceAll(command, "'", ""))
			require.Greater(t, len(args), 2, line)
			require.Equal(t, "kubectl", args[0], line)
			path, ok := strings.CutPrefix(args[1], "--server=https://gateway")
			require.True(t, ok, line)
			out, err := r.kubectl(c, path, args[2:]...)
			require.NoError(t, err, "%s\n%s", line, out)
			ran++
		}
	}
	require.Positive(t, ran)
}
