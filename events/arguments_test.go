// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/events"
)

// Start of a Recorder that New did not make returns an error.
func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"Start of a zero Recorder", "not made by New", func() error { return new(events.Recorder).Start(t.Context()) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
