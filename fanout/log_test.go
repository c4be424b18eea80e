// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// damaged is a log with one entry that cannot be read.
type damaged struct{ wal.Log }

func (d damaged) Open(ctx context.Context) iter.Seq2[wal.Entry, error] {
	return func(yield func(wal.Entry, error) bool) {
		if !yield(wal.Entry{ID: "0-damaged"}, &wal.CorruptError{}) {
			return
		}
		d.Log.Open(ctx)(yield)
	}
}

// An entry that this Coordinator cannot settle is reported, stays, and does not block other
// operations.
func TestEntriesThatCannotBeSettled(t *testing.T) {
	r := newRing(t)
	memory := waltest.NewMemory()
	all := coordinator(t, r, memory, fanout.Options{})
	name := addAccount(t, all)
	r.Partition("us-east", true)
	_, err := all.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{Unreachable: fanout.Forward})
	require.NoError(t, err)
	r.Partition("us-east", false)
	for _, e := range []wal.Entry{
		{ID: "0-foreign", Kind: "another program's", Data: []byte("\x00")},
		{ID: "0-empty", Key: "k", Kind: "add", Data: []byte("{}")},
	} {
		_, err = memory.Begin(t.Context(), e)
		require.NoError(t, err)
	}
	c := coordinator(t, r, damaged{memory}, fanout.Options{Kinds: []fanout.Kind{secretKind()}})
	ops, err := c.Recover(t.Context())
	require.Empty(t, ops)
	require.ErrorIs(t, err, fanout.ErrUnknownKind)
	require.ErrorContains(t, err, "Account.catalog.kubecarrier.io")
	require.ErrorContains(t, err, "0-foreign")
	_, corrupt := errors.AsType[*wal.CorruptError](err)
	require.True(t, corrupt, "%v", err)

	_, err = c.Add(t.Context(), newSecret(unique("ca"), "secret"), fanout.AddOptions{})
	require.NoError(t, err)
	_, err = all.Recover(t.Context())
	require.ErrorIs(t, err, fanout.ErrUnknownKind, "the entry that is empty")
	requireClean(t, all)
	open := 0
	for _, err := range memory.Open(t.Context()) {
		require.NoError(t, err)
		open++
	}
	require.Equal(t, 2, open, "unknown entries stay")
}
