// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunbooks requires that each command of atollctl in the runbooks exists, with its flags.
func TestRunbooks(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/operations.md")
	require.NoError(t, err)
	found := regexp.MustCompile("`atollctl ([^`|]+)").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(found), 20)
	for _, f := range found {
		c, args, err := (&session{}).root().Find(strings.Fields(f[1]))
		require.NoError(t, err, f[1])
		require.True(t, c.Runnable(), f[1])
		require.NoError(t, c.ParseFlags(args), f[1])
		require.NoError(t, c.ValidateArgs(c.Flags().Args()), f[1])
	}
}
