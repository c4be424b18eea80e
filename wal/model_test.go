// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// For each random sequence of calls and reopenings, a File returns the same results as the log in memory, except for
// versions and times.
func TestModel(t *testing.T) {
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		path := filepath.Join(dir, fmt.Sprintf("%d.db", runs))
		f, err := wal.Open(path, wal.Options{})
		require.NoError(t, err)
		m := &model{file: f, memory: waltest.NewMemory(), path: path, versions: map[string][2]string{}}
		t.Repeat(map[string]func(*rapid.T){
			"begin": m.begin, "advance": m.advance, "end": m.end, "find": m.find, "reopen": m.reopen, "": m.check,
		})
		require.NoError(t, m.file.Verify(t.Context()))
		require.NoError(t, m.file.Close())
		require.NoError(t, os.Remove(path))
	})
}

type model struct {
	file     *wal.File
	memory   *waltest.Memory
	path     string
	versions map[string][2]string // by ID, in the file and in memory
}

var sentinels = []error{wal.ErrExists, wal.ErrStale, wal.ErrNotFound, wal.ErrClosed}

// same requires that the File and the log in memory have returned equal results, except for versions and times.
func (m *model) same(t *rapid.T, a, b wal.Entry, errA, errB error) {
	require.Equal(t, errA == nil, errB == nil, "%v, %v", errA, errB)
	for _, s := range sentinels {
		require.Equal(t, errors.Is(errA, s), errors.Is(errB, s), "%v, %v", errA, errB)
	}
	if d := cmp.Diff(b, a, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(wal.Entry{}, "Version", "Ended", "Began")); d != "" {
		t.Fatalf("answers differ (-memory +file):\n%s", d)
	}
	require.Equal(t, b.Ended.IsZero(), a.Ended.IsZero())
	if errA == nil && a.ID != "" {
		m.versions[a.ID] = [2]string{a.Version, b.Version}
	}
}

func draw(t *rapid.T) wal.Entry {
	return wal.Entry{
		ID:    rapid.SampledFrom([]string{"a", "b", "c", "d", "ä"}).Draw(t, "id"),
		Key:   rapid.SampledFrom([]string{"", "k", "l", "m"}).Draw(t, "key"),
		State: rapid.StringMatching("[a-z]{0,9}").Draw(t, "state"),
		Data:  rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "data"),
	}
}

// versioned returns e twice: with the last known version in the File, and with the last known version in memory.
// Sometimes it returns both with a wrong version.
func (m *model) versioned(t *rapid.T, e wal.Entry) (file, memory wal.Entry) {
	file, memory = e, e
	v := m.versions[e.ID]
	file.Version, memory.Version = v[0], v[1]
	if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
		file.Version, memory.Version = "stale", "stale"
	}
	return file, memory
}

func (m *model) begin(t *rapid.T) {
	e := draw(t)
	a, errA := m.file.Begin(t.Context(), e)
	b, errB := m.memory.Begin(t.Context(), e)
	m.same(t, a, b, errA, errB)
}

func (m *model) advance(t *rapid.T) {
	e, f := m.versioned(t, draw(t))
	a, errA := m.file.Advance(t.Context(), e)
	b, errB := m.memory.Advance(t.Context(), f)
	m.same(t, a, b, errA, errB)
}

func (m *model) end(t *rapid.T) {
	e, f := m.versioned(t, draw(t))
	m.same(t, wal.Entry{}, wal.Entry{}, m.file.End(t.Context(), e, e.Data), m.memory.End(t.Context(), f, e.Data))
}

func (m *model) find(t *rapid.T) {
	key := draw(t).Key
	a, errA := m.file.Find(t.Context(), key)
	b, errB := m.memory.Find(t.Context(), key)
	m.same(t, a, b, errA, errB)
}

func (m *model) reopen(t *rapid.T) {
	require.NoError(t, m.file.Close())
	f, err := wal.Open(m.path, wal.Options{})
	require.NoError(t, err)
	m.file = f
}

func (m *model) check(t *rapid.T) {
	var a, b []wal.Entry
	for e, err := range m.file.Open(t.Context()) {
		require.NoError(t, err)
		a = append(a, e)
	}
	for e, err := range m.memory.Open(t.Context()) {
		require.NoError(t, err)
		b = append(b, e)
	}
	if d := cmp.Diff(b, a, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(wal.Entry{}, "Version", "Began")); d != "" {
		t.Fatalf("open entries differ (-memory +file):\n%s", d)
	}
}
