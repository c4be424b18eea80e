// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/wal"
)

const (
	pageSize   = 4096
	sectorSize = 512
)

// A disk that loses power keeps any part of the unsynced writes, in any order, in units of sectors. The test makes
// thousands of such images from a series of commits. Each image must open as the state before or after its commit. An
// image without the new meta page must open as the state before the commit.
func TestTornImages(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: thousands of files, read by one goroutine")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "wal.db")
	f, err := wal.Open(path, wal.Options{})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(5, 6))
	pages := images{t: t, path: filepath.Join(dir, "torn.db"), random: random}
	var live []wal.Entry
	for n := range 80 {
		before, held := snapshot(t, path, f)
		switch {
		case len(live) > 3 && n%3 == 0:
			require.NoError(t, f.End(t.Context(), live[0], []byte("over")))
			live = live[1:]
		case len(live) > 0 && n%3 == 1:
			i := random.IntN(len(live))
			live[i].Data = bytes.Repeat([]byte{byte(n)}, random.IntN(9000))
			live[i], err = f.Advance(t.Context(), live[i])
			require.NoError(t, err)
		default:
			e, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("%04d", n), Key: fmt.Sprint("k", n), Data: make([]byte, random.IntN(5000))})
			require.NoError(t, err)
			live = append(live, e)
		}
		after, now := snapshot(t, path, f)
		pages.commit(before, after, held, now)
	}
	require.NoError(t, f.Close())
	require.GreaterOrEqual(t, pages.count, 5000)
	said := fmt.Sprintf("%d images of 80 commits: %d opened as before the commit, %d as after it, none otherwise", pages.count, pages.count-pages.after, pages.after)
	t.Log(said)
	docpage.Section(t, "torn-images.md", "torn", said+".\n")
}

// snapshot returns the bytes of the file and the entries of the log.
func snapshot(t *testing.T, path string, f *wal.File) ([]byte, map[string]wal.Entry) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	held := map[string]wal.Entry{}
	for e, err := range f.Open(t.Context()) {
		require.NoError(t, err)
		held[e.ID] = e
	}
	return b, held
}

type images struct {
	t      *testing.T
	path   string
	random *rand.Rand
	count  int
	after  int // images that opened as the state after the commit
}

// commit tries images that a loss of power can leave while a commit changes the file from before to after. Pages 0
// and 1 are the meta pages.
func (im *images) commit(before, after []byte, old, now map[string]wal.Entry) {
	grown := append(bytes.Clone(before), make([]byte, max(0, len(after)-len(before)))...)
	var data []int
	metas := 0
	for p := 0; p*pageSize < len(after); p++ {
		at := p * pageSize
		if bytes.Equal(grown[at:at+pageSize], after[at:at+pageSize]) {
			continue
		}
		if p < 2 {
			metas = metas*4 + p + 1
		} else {
			data = append(data, p)
		}
	}
	require.Contains(im.t, []int{1, 2}, metas, "a commit writes one meta page")
	require.NotEmpty(im.t, data)

	im.try(before, old, nil) // no write reached the disk, not even the new length
	subsets := 1 << min(len(data), 5)
	for n := range subsets {
		image := bytes.Clone(grown)
		for i, p := range data {
			if i < 5 && n>>i&1 == 1 || i >= 5 && im.random.IntN(2) == 1 {
				copy(image[p*pageSize:(p+1)*pageSize], after[p*pageSize:])
			}
		}
		im.try(image, old, nil)
	}
	for range 40 { // images with pages torn at sectors
		image := bytes.Clone(grown)
		for _, p := range data {
			for at := p * pageSize; at < (p+1)*pageSize; at += sectorSize {
				if im.random.IntN(2) == 1 {
					copy(image[at:at+sectorSize], after[at:])
				}
			}
		}
		im.try(image, old, nil)
	}
	meta := metas - 1
	for n := range pageSize / sectorSize { // images with the meta page torn at each sector, after all data
		image := bytes.Clone(after)
		copy(image[meta*pageSize:(meta+1)*pageSize], grown[meta*pageSize:])
		at := meta*pageSize + n*sectorSize
		copy(image[at:at+sectorSize], after[at:])
		im.try(image, old, now)
	}
	im.try(after, now, nil)
	im.after++
}

// try opens one image and requires that its entries are those of a or, unless b is nil, those of b.
func (im *images) try(image []byte, a, b map[string]wal.Entry) {
	t := im.t
	t.Helper()
	im.count++
	require.NoError(t, os.WriteFile(im.path, image, 0o600))
	found, damaged, err := survey(t, im.path)
	require.NoError(t, err)
	require.Empty(t, damaged)
	want := a
	if b != nil && fmt.Sprint(found) == fmt.Sprint(b) {
		want = b
		im.after++
	}
	require.Equal(t, want, found)
	if im.count%50 == 0 {
		checkBolt(t, im.path)
	}
}

// A log is created under another name, so a crash never leaves a partial log. If something else truncates the file or
// overwrites its end, Open refuses the file and keeps its bytes, unless the rest is a complete log.
func TestCutFirstFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "wal.db")
	f, err := wal.Open(path, wal.Options{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	refused, images := 0, 0
	for cut := 0; cut <= len(whole); cut += sectorSize {
		for tail, fill := range map[string]byte{"cut": 1, "zero": 0, "garbage": 0xA5} {
			sub := filepath.Join(dir, fmt.Sprint(tail, cut))
			require.NoError(t, os.Mkdir(sub, 0o700))
			target := filepath.Join(sub, "wal.db")
			image := bytes.Clone(whole[:cut])
			if tail != "cut" {
				image = append(image, bytes.Repeat([]byte{fill}, len(whole)-cut)...)
			}
			require.NoError(t, os.WriteFile(target, image, 0o600))
			images++
			f, err := wal.Open(target, wal.Options{})
			if err == nil {
				require.NoError(t, f.Verify(t.Context()))
				require.NoError(t, f.Close())
				continue
			}
			refused++
			at := target
			if c, ok := errors.AsType[*wal.CorruptError](err); ok {
				at = c.SetAside
			} else {
				_, ok := errors.AsType[*wal.SchemaError](err)
				require.True(t, ok, "%s at %d: %v", tail, cut, err)
			}
			kept, err := os.ReadFile(at)
			require.NoError(t, err)
			require.True(t, bytes.Equal(image, kept))
		}
	}
	require.Positive(t, refused)
	require.GreaterOrEqual(t, images, 100)
	said := fmt.Sprintf("%d images: %d refused and kept byte for byte, %d whole", images, refused, images-refused)
	t.Log(said)
	docpage.Section(t, "torn-images.md", "cut", said+".\n")
}

// A truncated log, however short, counts as damaged: it is renamed, and no new log is created in its place. It is
// not mistaken for a file of another program.
func TestCutIsDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "wal.db")
	filled(t, path, 24)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	cuts := []int{0, 1, 7, 8, 9, 10, 15, 16, 17, 19, 20, 23, 24, 25, 79, 80, 81}
	for page := pageSize; page <= len(whole)-pageSize; page += pageSize {
		cuts = append(cuts, page-1, page, page+1, page+79, page+80)
	}
	for _, cut := range cuts {
		sub := filepath.Join(dir, fmt.Sprint(cut))
		require.NoError(t, os.Mkdir(sub, 0o700))
		target := filepath.Join(sub, "wal.db")
		require.NoError(t, os.WriteFile(target, whole[:cut], 0o600))
		for range 2 {
			f, err := wal.Open(target, wal.Options{})
			if err == nil { // bbolt allocates space in advance; here the missing part was unused
				require.Greater(t, cut, 6*pageSize)
				require.NoError(t, f.Verify(t.Context()))
				require.NoError(t, f.Close())
				break
			}
			corrupt, ok := errors.AsType[*wal.CorruptError](err)
			require.True(t, ok, "%d bytes: %v", cut, err)
			kept, err := os.ReadFile(corrupt.SetAside)
			require.NoError(t, err)
			require.True(t, bytes.Equal(whole[:cut], kept), "%d bytes", cut)
		}
		f, err := wal.Open(target, wal.Options{AcceptLoss: true})
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}

// Short files of other programs are left unchanged.
func TestShortForeignFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	for _, content := range []string{"x", "dear diary", "\x00\x00\x00\x00\x00\x00\x00\x00\x08", strings.Repeat("\x00", 80)} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := wal.Open(path, wal.Options{})
		_, ok := errors.AsType[*wal.SchemaError](err)
		require.True(t, ok, "%q: %v", content, err)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(after))
	}
}

// A crash during creation leaves at most a temporary file, which the next start replaces.
func TestCrashDuringCreation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	for _, rest := range [][]byte{nil, []byte("half"), make([]byte, 3*pageSize)} {
		require.NoError(t, os.WriteFile(path+".new", rest, 0o600))
		f, err := wal.Open(path, wal.Options{})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoFileExists(t, path+".new")
		require.NoError(t, os.Remove(path))
	}
}

// bbolt selects the meta page with the newer transaction. If one page is damaged, it may have been the newer one, so
// the log reports the damage.
func TestDamagedMetaPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	filled(t, path, 3)
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	newest := 0
	if binary.NativeEndian.Uint64(image[pageSize+64:]) > binary.NativeEndian.Uint64(image[64:]) {
		newest = 1
	}
	image[newest*pageSize+70] ^= 1
	require.NoError(t, os.WriteFile(path, image, 0o600))
	_, damaged, err := survey(t, path)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"": true}, damaged, "the last commit is lost without a report")
}
