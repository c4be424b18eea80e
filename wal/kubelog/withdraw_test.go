// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

// TestWithdrawLate: to withdraw what was decided, carried out and ended meanwhile is no withdrawal, and neither is it when
// the record is gone.
func TestWithdrawLate(t *testing.T) {
	t.Parallel()
	for name, decided := range map[string]bool{"decided and ended": true, "withdrawn by another": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t, newServer(t), kubelog.Options{})
			e, pending, err := l.Propose(t.Context(), wal.Entry{ID: "a", State: "begun"})
			require.NoError(t, err)
			if decided {
				e, _, err = l.Decide(t.Context(), e, "eu", "u1")
				require.NoError(t, err)
			}
			require.NoError(t, l.End(t.Context(), e, []byte("first")))
			require.ErrorIs(t, l.Withdraw(t.Context(), pending, []byte("late")), wal.ErrNotFound)
		})
	}
	l := open(t, newServer(t), kubelog.Options{})
	require.ErrorIs(t, l.Withdraw(t.Context(), wal.Decision{ID: "a", UID: "u", Version: "u/1"}, nil), wal.ErrNotFound)
}
