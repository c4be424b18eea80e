// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/wal"
)

// filled writes and closes a log with entries on several pages. It returns the open entries by ID.
func filled(t *testing.T, path string, n int) map[string]wal.Entry {
	t.Helper()
	f, err := wal.Open(path, wal.Options{})
	require.NoError(t, err)
	entries := map[string]wal.Entry{}
	for i := range n {
		e, err := f.Begin(t.Context(), wal.Entry{
			ID: fmt.Sprintf("operation-%03d", i), Key: fmt.Sprintf("request-%03d", i), Kind: "test", State: "begun",
			Data: bytes.Repeat([]byte{byte(i)}, 300),
		})
		require.NoError(t, err)
		if i%4 == 0 {
			require.NoError(t, f.End(t.Context(), e, []byte("over")))
			continue
		}
		entries[e.ID] = e
	}
	require.NoError(t, f.Close())
	return entries
}

// survey opens and lists a log. It returns the undamaged entries by ID, and the IDs of the damaged ones.
func survey(t *testing.T, path string) (found map[string]wal.Entry, damaged map[string]bool, openErr error) {
	t.Helper()
	f, err := wal.Open(path, wal.Options{})
	if err != nil {
		return nil, nil, err
	}
	found, damaged = map[string]wal.Entry{}, map[string]bool{}
	for e, err := range f.Open(t.Context()) {
		if c, ok := errors.AsType[*wal.CorruptError](err); ok {
			damaged[c.ID] = true
			continue
		}
		require.NoError(t, err)
		found[e.ID] = e
	}
	require.NoError(t, f.Close())
	return found, damaged, nil
}

// A flipped bit in a record is reported with the entry's ID, and all other entries stay readable. If the bit is in the
// name of the record, Open repairs the name and reports the repair.
func TestFlippedRecords(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "wal.db")
	entries := filled(t, path, 24)
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	flipped := 0
	for id, e := range entries {
		// Pages of earlier commits hold copies of the record: damage all copies, at the same offset.
		for range 6 {
			bad := bytes.Clone(image)
			offset := random.IntN(330) // an offset in the name, header, fields or data
			name := offset < len(id)
			bit := byte(1) << random.IntN(8)
			for at := 0; ; {
				i := bytes.Index(image[at:], []byte(id+"\x01"))
				if i < 0 {
					break
				}
				bad[at+i+offset] ^= bit
				at += i + 1
			}
			target := filepath.Join(dir, fmt.Sprintf("flip-%d.db", flipped))
			flipped++
			require.NoError(t, os.WriteFile(target, bad, 0o600))
			f, err := wal.Open(target, wal.Options{})
			require.NoError(t, err)
			var sound int
			var damaged []string
			for e, err := range f.Open(t.Context()) {
				if c, ok := errors.AsType[*wal.CorruptError](err); ok {
					damaged = append(damaged, c.ID)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, entries[e.ID], e)
				sound++
			}
			if name { // the record repeats the name: Open has repaired the name and reports the repair
				require.Equal(t, []string{""}, damaged, "offset %d bit %d", offset, bit)
				require.Equal(t, len(entries), sound)
				require.NoError(t, f.Verify(t.Context()))
				_, err = f.Advance(t.Context(), e)
				require.NoError(t, err)
				require.NoError(t, f.Close())
				continue
			}
			require.Equal(t, []string{id}, damaged, "offset %d bit %d", offset, bit)
			require.Equal(t, len(entries)-1, sound)

			corrupt := func(err error) {
				t.Helper()
				c, ok := errors.AsType[*wal.CorruptError](err)
				require.True(t, ok, "offset %d: %v", offset, err)
				require.Equal(t, id, c.ID)
			}
			_, err = f.Find(t.Context(), e.Key)
			corrupt(err)
			_, err = f.Begin(t.Context(), wal.Entry{ID: id})
			corrupt(err)
			_, err = f.Begin(t.Context(), wal.Entry{ID: "new", Key: e.Key})
			corrupt(err)
			_, err = f.Advance(t.Context(), e)
			corrupt(err)
			corrupt(f.End(t.Context(), e, nil))
			corrupt(f.Verify(t.Context()))
			_, err = f.Begin(t.Context(), wal.Entry{ID: "another"})
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	require.GreaterOrEqual(t, flipped, 100)
}

// The test flips 1500 random bits of the pages in use, one at a time. Each flipped bit is either harmless or reported:
// no entry changes or disappears silently.
func TestFlippedBits(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "wal.db")
	entries := filled(t, path, 24)
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(3, 4))
	used := usedBytes(t, path)
	reported, aside := 0, 0
	for range 1500 {
		at := used[random.IntN(len(used))]
		bit := byte(1) << random.IntN(8)
		sub := filepath.Join(dir, "flip")
		require.NoError(t, os.RemoveAll(sub))
		require.NoError(t, os.Mkdir(sub, 0o700))
		target := filepath.Join(sub, "wal.db")
		image[at] ^= bit
		require.NoError(t, os.WriteFile(target, image, 0o600))
		image[at] ^= bit
		found, damaged, err := survey(t, target)
		if err != nil {
			c, ok := errors.AsType[*wal.CorruptError](err)
			if !ok {
				_, ok := errors.AsType[*wal.SchemaError](err)
				require.True(t, ok, "byte %d bit %d: %v", at, bit, err)
				continue
			}
			kept, err := os.ReadFile(c.SetAside)
			require.NoError(t, err)
			require.Len(t, kept, len(image))
			aside++
			continue
		}
		for id, e := range found {
			require.Equal(t, entries[id], e, "byte %d bit %d", at, bit)
		}
		if len(damaged) == 0 {
			require.Len(t, found, len(entries), "byte %d bit %d: entries are lost without a report", at, bit)
		} else {
			reported++
		}
	}
	require.Positive(t, reported)
	require.Positive(t, aside)
	said := fmt.Sprintf("1500 flipped bits: %d reported, %d files set aside, the rest without effect", reported, aside)
	t.Log(said)
	docpage.Section(t, "torn-images.md", "flipped", said+".\n")
}

// usedBytes returns the offset of each byte in the pages that are in use after the newest commit, so that flips do not
// hit free pages.
func usedBytes(t *testing.T, path string) []int {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var offsets []int
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		for id := 0; ; id++ {
			p, err := tx.Page(id)
			if err != nil || p == nil {
				return err
			}
			if p.Type == "free" {
				continue
			}
			for i := range 4096 {
				offsets = append(offsets, id*4096+i)
			}
		}
	}))
	return offsets
}

func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	other := filepath.Join(dir, "other")
	db, err := bbolt.Open(other, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("theirs"))
		return err
	}))
	require.NoError(t, db.Close())
	bolt, err := os.ReadFile(other)
	require.NoError(t, err)
	broken := bytes.Clone(bolt)
	for i := range broken[8192:] {
		broken[8192+i] = 0xAA
	}
	for name, content := range map[string][]byte{
		"text": []byte("dear diary"), "zeros": make([]byte, 64<<10), "bolt": bolt, "broken bolt": broken,
		"random": bytes.Repeat([]byte{0xED, 7, 9}, 9999),
	} {
		require.NoError(t, os.WriteFile(path, content, 0o600))
		_, err := wal.Open(path, wal.Options{})
		s, ok := errors.AsType[*wal.SchemaError](err)
		require.True(t, ok, "%s: %v", name, err)
		require.Equal(t, path, s.Path)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, after), "%s was changed", name)
	}
	_, err = wal.Open(dir, wal.Options{})
	_, ok := errors.AsType[*wal.SchemaError](err)
	require.True(t, ok, "%v", err)
}

func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "wal.db")
	filled(t, path, 24)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	bad := bytes.Clone(whole)
	for _, at := range usedBytes(t, path) {
		if at%4096 == 8 && at > 8192 {
			bad[at] = 0x77 // overwrite the page's type
		}
	}
	require.NoError(t, os.WriteFile(path, bad, 0o600))

	var aside string
	for range 2 { // a second start does not create an empty log either
		_, err := wal.Open(path, wal.Options{})
		c, ok := errors.AsType[*wal.CorruptError](err)
		require.True(t, ok, "%v", err)
		require.NotEmpty(t, c.SetAside)
		require.Contains(t, err.Error(), c.SetAside)
		aside = c.SetAside
	}
	kept, err := os.ReadFile(aside)
	require.NoError(t, err)
	require.True(t, bytes.Equal(bad, kept))

	f, err := wal.Open(path, wal.Options{AcceptLoss: true})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.WriteFile(path, whole, 0o600)) // a backup takes its place
	open(t, path, wal.Options{})
}

func TestNewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	filled(t, path, 2)
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("schema"), wal.SealRecord([]byte{2}))
	}))
	require.NoError(t, db.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = wal.Open(path, wal.Options{})
	s, ok := errors.AsType[*wal.SchemaError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "atoll.dev/wal schema 2", s.Found)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after))
}
