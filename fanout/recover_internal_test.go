// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// TestDue calls due with all combinations of an entry's properties. due returns true if no other
// coordinator works on the entry, its retry time has passed, and no request of an operation without
// effect can still be applied.
func TestDue(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, nothing := range []bool{false, true} {
		for _, idle := range []time.Duration{0, time.Minute, time.Minute + 1} {
			for _, lapsed := range []bool{false, true} {
				for _, rest := range []time.Time{{}, now.Add(-1), now, now.Add(1)} {
					o := openEntry{nothing: nothing, idle: idle, lapsed: lapsed, rest: rest}
					want := lapsed && rest.Before(now) && (!nothing || idle > time.Minute)
					require.Equal(t, want, o.due(now, time.Minute), "%+v", o)
				}
			}
		}
	}
}

// TestUnsettled covers errors that leave an operation open, and errors that report how an operation
// ended.
func TestUnsettled(t *testing.T) {
	unreachable := &region.Error{Peer: "eu-west", Op: "read", Err: region.ErrUnavailable}
	for _, tc := range []struct {
		err  error
		open bool
	}{
		{nil, false},
		{ErrAborted, false},
		{ErrEnded, false},
		{ErrNotFound, false},
		{&HeldError{}, false},
		{&ConflictError{}, false},
		{fmt.Errorf("add: %w: %w", ErrAborted, unreachable), false},
		{unreachable, true},
		{wal.ErrStale, true},
		{errors.New("write-ahead log: no space"), true},
		{&OccupiedError{}, true},
		{&InDoubtError{Err: unreachable}, true},
		{&InDoubtError{Err: &HeldError{Lost: "eu-west"}}, true},
		{&InDoubtError{Err: ErrNotFound}, true},
	} {
		require.Equal(t, tc.open, unsettled(tc.err), "%v", tc.err)
	}
}
