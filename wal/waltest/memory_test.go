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

// measured is a typical wrapper: it embeds the log.
type measured struct{ wal.Log }

func TestMemory(t *testing.T) {
	wrap := func(l *waltest.Memory, err error) (wal.Log, error) {
		if err != nil {
			return nil, err
		}
		return measured{l}, nil
	}
	plain := func(l *waltest.Memory, err error) (wal.Log, error) {
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	for name, log := range map[string]func() *waltest.Memory{"exclusive": waltest.NewMemory, "shared": waltest.NewSharedMemory} {
		for way, handle := range map[string]func(*waltest.Memory, error) (wal.Log, error){"plain": plain, "wrapped": wrap} {
			t.Run(name+" "+way, func(t *testing.T) {
				waltest.Run(t, func(*testing.T) waltest.Opener {
					first := log()
					require.NoError(t, first.Close())
					return func(*testing.T) (wal.Log, error) { return handle(first.Attach()) }
				})
			})
		}
	}
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
