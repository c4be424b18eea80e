// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/internal/docpage"
)

var written = regexp.MustCompile(`(?ms)^(apiVersion: gateway\.atoll\.dev/.*?)(?:^END$|\z)`)

// Each configuration in a page is accepted.
func TestPages(t *testing.T) {
	accepted := 0
	for _, path := range []string{"../README.md", "../../../docs/tutorial.md"} {
		for _, b := range docpage.Blocks(t, path) {
			for _, m := range written.FindAllStringSubmatch(b.Text, -1) {
				_, err := config.Parse([]byte(m[1]))
				require.NoError(t, err, "%s:%d", path, b.Line)
				accepted++
			}
		}
	}
	require.Equal(t, 2, accepted)
}
