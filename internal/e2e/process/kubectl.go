// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/build"
)

// Kubectl runs the real kubectl with the given standard input, and returns all that it prints.
func Kubectl(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	programs, err := build.Programs(t.Context(), build.Kubectl)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), programs[build.Kubectl], args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
