// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package waltest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func TestMemory(t *testing.T) {
	waltest.Run(t, func(*testing.T) wal.Log { return waltest.NewMemory() })
}

func TestMemoryFaults(t *testing.T) {
	for _, applied := range []bool{true, false} {
		m := waltest.NewMemory()
		cause := errors.New("disk on fire")
		m.FailNext(applied, cause)
		_, err := m.Begin(t.Context(), wal.Entry{ID: "a", Key: "k"})
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, wal.ErrClosed)
		_, ok := errors.AsType[*wal.InDoubtError](err)
		require.True(t, ok)
		_, err = m.Find(t.Context(), "k")
		require.ErrorIs(t, err, wal.ErrClosed)
		_, err = m.Reopen().Find(t.Context(), "k")
		if applied {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, wal.ErrNotFound)
		}
	}
}
