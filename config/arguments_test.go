// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
)

// If an argument is missing, each function returns an error that names it.
func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"InstallCRDs", "api is nil", func() error { _, err := config.InstallCRDs(t.Context(), nil, config.InstallOptions{}); return err }},
		{"InstallCRDs typed", "api is nil", func() error {
			_, err := config.InstallCRDs(t.Context(), (*region.Conn)(nil), config.InstallOptions{})
			return err
		}},
		{"CRD", "CRD", func() error { _, err := config.CRD(""); return err }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
