// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package waltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// runSeveral checks that a log is exclusive or shared as its Shared reports. For a shared log it also
// checks the rules of sharing.
func runSeveral(t *testing.T, store func(t *testing.T) Opener) {
	t.Helper()
	t.Run("it_is_as_exclusive_as_it_says", func(t *testing.T) {
		open := store(t)
		require.NoError(t, exclusivity(t.Context(), func() (wal.Log, error) { return open(t) }))
	})
	first, err := store(t)(t)
	require.NoError(t, err)
	if !first.Shared() {
		return
	}
	for _, c := range []struct {
		name string
		test func(t *testing.T, mine, theirs wal.Log)
	}{
		{"what one begins all see", sharedBegin},
		{"a key is known to all", sharedKey},
		{"an advance that changes nothing is a sign of life", signOfLife},
		{"who takes an entry over owns it", takeover},
		{"one of many takes an entry over", takeoverRace},
		{"what one ends has ended for all", sharedEnd},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			open := store(t)
			mine, err := open(t)
			require.NoError(t, err)
			theirs, err := open(t)
			require.NoError(t, err)
			c.test(t, mine, theirs)
		})
	}
}

// exclusivity returns an error if a log does not behave as its Shared reports.
func exclusivity(ctx context.Context, open func() (wal.Log, error)) error {
	first, err := open()
	if err != nil {
		return err
	}
	e, err := first.Begin(ctx, sample(1))
	if err != nil {
		return err
	}
	second, err := open()
	switch {
	case first.Shared() && err != nil:
		return fmt.Errorf("the log reports that it is shared and refuses a second handle: %w", err)
	case first.Shared() && !second.Shared():
		return errors.New("one handle reports that the log is shared, another that it is exclusive")
	case first.Shared():
		return nil
	case err == nil:
		return errors.New("the log reports that it is exclusive and can be opened twice: forward Shared of the wrapped log")
	}
	if _, err = first.Advance(ctx, e); err != nil {
		return fmt.Errorf("the refused open has disturbed the first handle: %w", err)
	}
	closer, ok := first.(io.Closer)
	if !ok {
		return nil // the handle cannot be closed: a wrapper need not forward Close
	}
	if err := closer.Close(); err != nil {
		return err
	}
	if second, err = open(); err != nil {
		return fmt.Errorf("the log stays refused after its first handle was closed: %w", err)
	}
	_, err = second.Find(ctx, e.Key)
	return err
}

func sharedBegin(t *testing.T, mine, theirs wal.Log) {
	e := begin(t, mine, sample(1))
	require.Equal(t, []wal.Entry{e}, list(t, theirs))
	found, err := theirs.Find(t.Context(), e.Key)
	require.NoError(t, err)
	require.Equal(t, e, found)
}

func sharedKey(t *testing.T, mine, theirs wal.Log) {
	e := begin(t, mine, sample(1))
	stored, err := theirs.Begin(t.Context(), sample(1))
	require.ErrorIs(t, err, wal.ErrExists)
	require.Equal(t, e, stored)
	other := sample(2)
	other.Key = e.Key
	stored, err = theirs.Begin(t.Context(), other)
	require.ErrorIs(t, err, wal.ErrExists)
	require.Equal(t, e, stored)
}

func signOfLife(t *testing.T, mine, theirs wal.Log) {
	e := begin(t, mine, sample(1))
	before := list(t, theirs)
	_, err := mine.Advance(t.Context(), e)
	require.NoError(t, err)
	after := list(t, theirs)
	require.NotEqual(t, before[0].Version, after[0].Version)
	same(t, before[0], after[0])
}

func takeover(t *testing.T, mine, theirs wal.Log) {
	e := begin(t, mine, sample(1))
	taken := list(t, theirs)[0]
	require.Equal(t, e.Owner, taken.Owner)
	taken.Owner = "you"
	taken, err := theirs.Advance(t.Context(), taken)
	require.NoError(t, err)

	e.State = "committing"
	stored, err := mine.Advance(t.Context(), e)
	require.ErrorIs(t, err, wal.ErrStale)
	require.Equal(t, taken, stored, "the stored entry has the new owner")
	require.ErrorIs(t, mine.End(t.Context(), e, []byte("mine")), wal.ErrStale)
	require.Equal(t, []wal.Entry{taken}, list(t, mine))

	taken, err = theirs.Advance(t.Context(), taken)
	require.NoError(t, err)
	require.NoError(t, theirs.End(t.Context(), taken, []byte("theirs")))
	found, err := mine.Find(t.Context(), e.Key)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(found.Outcome))
}

func takeoverRace(t *testing.T, mine, theirs wal.Log) {
	e := begin(t, mine, sample(1))
	require.Equal(t, 1, race(t, 8, wal.ErrStale, func(n int) error {
		taken := e
		taken.Owner = fmt.Sprint(n)
		_, err := []wal.Log{mine, theirs}[n%2].Advance(t.Context(), taken)
		return err
	}))
	require.Equal(t, list(t, mine), list(t, theirs))
}

func sharedEnd(t *testing.T, mine, theirs wal.Log) {
	e := begin(t, mine, sample(1))
	require.NoError(t, theirs.End(t.Context(), e, []byte("first")))
	require.Empty(t, list(t, mine))
	require.NoError(t, mine.End(t.Context(), e, []byte("second")))
	stored, err := mine.Advance(t.Context(), e)
	require.ErrorIs(t, err, wal.ErrStale)
	require.Equal(t, "first", string(stored.Outcome))
}
