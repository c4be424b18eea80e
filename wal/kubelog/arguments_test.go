// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

// TestArguments checks that New reports a missing API, and that each call of a zero Log returns an error.
func TestArguments(t *testing.T) {
	const notMade = "not made by kubelog.New"
	var zero kubelog.Log
	ctx := t.Context()
	entry := wal.Entry{ID: "a", Kind: "test"}
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New", "api is nil", func() error { _, err := kubelog.New(nil, kubelog.Options{}); return err }},
		{"New typed", "api is nil", func() error { _, err := kubelog.New((*region.Conn)(nil), kubelog.Options{}); return err }},
		{"Begin", notMade, func() error { _, err := zero.Begin(ctx, entry); return err }},
		{"Advance", notMade, func() error { _, err := zero.Advance(ctx, entry); return err }},
		{"End", notMade, func() error { return zero.End(ctx, entry, nil) }},
		{"Find", notMade, func() error { _, err := zero.Find(ctx, "key"); return err }},
		{"Decision", notMade, func() error { _, err := zero.Decision(ctx, "a"); return err }},
		{"Open", notMade, func() error {
			for _, err := range zero.Open(ctx) {
				return err
			}
			return nil
		}},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
