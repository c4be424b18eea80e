// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atoll-dev/atoll/internal/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write testdata/story.txt anew")

func TestStory(t *testing.T) {
	var stdout bytes.Buffer
	lines := logtest.New()
	require.NoError(t, static(logged(t.Context(), true, lines), &stdout), "%s", &stdout)
	lines.Await(t, "logger=ring", "peer=ap-south", "to=Unhealthy")

	golden := filepath.Join("testdata", "story.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, stdout.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), stdout.String()); diff != "" {
		t.Errorf("the story differs (-%s +now):\n%s", golden, diff)
	}
}

// If the context ends in the middle of the story, the program and its loops end.
func TestInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	err := static(ctx, writer(func(p []byte) {
		if bytes.Contains(p, []byte("A peer is lost")) {
			interrupt()
		}
	}))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "A peer is lost")
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
