// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return rapid.String().Draw(t, name) }
		blob := func(name string) []byte { return append([]byte(nil), rapid.SliceOf(rapid.Byte()).Draw(t, name)...) }
		at := func(name string) time.Time {
			return time.Unix(rapid.Int64Range(-62135596800, 1<<40).Draw(t, name), rapid.Int64Range(0, 999_999_999).Draw(t, name)).UTC()
		}
		e := Entry{
			ID: text("id"), Kind: text("kind"), Key: text("key"), Owner: text("owner"), State: text("state"), Data: blob("data"),
			Began: at("began"), Version: text("version"), Outcome: blob("outcome"), Ended: at("ended"),
		}
		record := encodeEntry(e)
		got, err := decodeEntry(record)
		require.NoError(t, err)
		require.Equal(t, e, got)

		record[rapid.IntRange(0, len(record)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		_, err = decodeEntry(record)
		require.Error(t, err)
	})
	zero, err := decodeEntry(encodeEntry(Entry{}))
	require.NoError(t, err)
	require.True(t, zero.Ended.IsZero())
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(encodeEntry(Entry{ID: "a", Key: "b", Data: []byte("c")}))
	f.Add(sealRecord([]byte{1, 'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, record := range [][]byte{b, sealRecord(b)} { // unchanged, and with a valid checksum
			if e, err := decodeEntry(record); err == nil {
				again, err := decodeEntry(encodeEntry(e))
				require.NoError(t, err)
				require.Equal(t, e, again)
			}
			_, _, _ = decodeName(record)
			_, _ = decodeCensus(record)
		}
	})
}

func FuzzPages(f *testing.F) {
	f.Add([]byte{1, 2, 3}, 3)
	f.Fuzz(func(_ *testing.T, b []byte, root int) {
		m := meta{pageSize: 1024, root: uint64(root), pages: uint64(len(b) / 1024)}
		_, _ = walk(bytes.NewReader(b), int64(len(b)), m, func(string, []byte, []byte) {})
		_, _, _ = readMetas(bytes.NewReader(b))
	})
}
