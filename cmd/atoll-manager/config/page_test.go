// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
	"github.com/atoll-dev/atoll/internal/docpage"
)

// The configuration in README.md is accepted.
func TestPage(t *testing.T) {
	accepted := 0
	for _, b := range docpage.Blocks(t, "../README.md") {
		if strings.Contains(b.Text, "kind: ManagerConfiguration") {
			_, err := config.Parse([]byte(b.Text))
			require.NoError(t, err)
			accepted++
		}
	}
	require.Equal(t, 1, accepted)
}
