// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChapter(t *testing.T) {
	for name, test := range map[string]struct {
		color bool
		err   error
		want  string
	}{
		"plain": {want: "\n1. A title\n     a    long cell\n     bcd  e\n   note 1\n     f  g\n   Safe: because\n   (TIME)\n"},
		"color": {color: true, want: "\n\x1b[1m1. A title\x1b[0m\n     a    long cell\n     bcd  e\n   note 1\n     f  g\n" +
			"\x1b[2m   Safe: because\x1b[0m\n\x1b[2m   (TIME)\x1b[0m\n"},
		"failed": {err: errors.New("no"), want: "\n1. A title\n     a    long cell\n     bcd  e\n   note 1\n     f  g\n   This failed.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			n := &narrator{w: &out, color: test.color}
			err := n.chapter("A title", "because", func() error {
				n.row("a", "long cell")
				n.row("bcd", "e")
				n.note("note %d", 1)
				n.row("f", "g")
				return test.err
			})
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, mask(out.Bytes()))
		})
	}
}

func TestColorIsForTerminals(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	require.False(t, newNarrator(&bytes.Buffer{}).color)
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	require.False(t, newNarrator(file).color)
	require.NoError(t, file.Close())

	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, device.Close()) }()
	require.True(t, newNarrator(device).color, "a character device")
	t.Setenv("NO_COLOR", "1")
	require.False(t, newNarrator(device).color)
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	require.False(t, newNarrator(device).color)
}
