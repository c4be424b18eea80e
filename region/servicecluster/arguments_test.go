// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/servicecluster"
)

// If an argument is wrong, the function does not panic, and its error names the argument.
func TestArguments(t *testing.T) {
	t.Parallel()
	var nilRing *region.Ring
	with := func(opts servicecluster.Options) func() error {
		return func() error { _, err := servicecluster.New(region.Fixed(), opts); return err }
	}
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"no Directory", "Directory is nil", func() error { _, err := servicecluster.New(nil, servicecluster.Options{}); return err }},
		{"typed nil", "Directory is nil", func() error { _, err := servicecluster.New(nilRing, servicecluster.Options{}); return err }},
		{"zero Controller", "not made by New", func() error { return new(servicecluster.Controller).Start(t.Context()) }},
		{"Interval", "Options.Interval is -1s", with(servicecluster.Options{Interval: -time.Second})},
		{"MaxBackoff", "Options.MaxBackoff is -1s", with(servicecluster.Options{MaxBackoff: -time.Second})},
		{"Timeout", "Options.Timeout is -1s", with(servicecluster.Options{Timeout: -time.Second})},
		{"CallTimeout", "Options.CallTimeout is -1s", with(servicecluster.Options{CallTimeout: -time.Second})},
		{"Failures", "Options.Failures is -1", with(servicecluster.Options{Failures: -1})},
		{"Workers", "Options.Workers is -1", with(servicecluster.Options{Workers: -1})},
		{"PerAccount", "Options.PerAccount is -1", with(servicecluster.Options{PerAccount: -1})},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
