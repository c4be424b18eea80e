// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atoll-dev/atoll/examples/internal/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Most of the time the story waits: for the grace period, and for controllers that work in steps. A busy machine may pause
// all syncers for longer than the default grace period, so the test sets a longer one. It also pauses single watches.
func TestStory(t *testing.T) {
	var stdout, stderr bytes.Buffer
	picture := filepath.Join(t.TempDir(), "availability.svg")
	require.Zero(t, availability(t.Context(), []string{"-grace", "15s", "-lag", "3s", "-chart", picture}, &stdout, &stderr), "%s%s", &stdout, &stderr)
	require.Empty(t, stderr.String())
	require.Equal(t, len((&story{}).steps()), strings.Count(stdout.String(), "the longest pause"), &stdout)
	require.Contains(t, stdout.String(), "The samples kept the budget and the limit of pods")
	require.Contains(t, stdout.String(), "Nothing is left, upstream or in any cluster.")

	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(svg, new(struct{})))
	for _, want := range append(stage.Names()[1:], "pods", "desired", "budget", "limit", "5. cluster-2 is lost") {
		require.Contains(t, string(svg), want)
	}
}

// README.md has a section for each step.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rest := string(text)
	for _, step := range (&story{}).steps() {
		_, after, found := strings.Cut(rest, ". "+step.title+"\n")
		require.True(t, found, "the step %q is missing, or not in its place", step.title)
		rest = after
	}
}

// A sample below the budget or above the limit fails the step in which it was taken.
func TestSamplesAreJudged(t *testing.T) {
	m, err := stage.Listen(t.Context())
	require.NoError(t, err)
	defer m.Close()
	on, err := stage.Open(m.Files)
	require.NoError(t, err)
	defer on.Close()
	s := newSampler(on, nil, newTraffic(on, nil), 0)
	s.add(counts{available: []int{3, 3, 0}, present: 6}, 6)
	require.Empty(t, s.next("the next step").wrong)
	s.add(counts{available: []int{3, 0, 0}, present: 6}, 6)
	s.add(counts{available: []int{3, 3, 0}, present: 9}, 6)
	wrong := s.next("").wrong
	require.Len(t, wrong, 2)
	require.Contains(t, wrong[0], "3 replicas are available, of at least 4")
	require.Contains(t, wrong[1], "9 pods run, of at most 8")
	s.add(counts{available: []int{3, -1, 0}, present: 3}, 6)
	require.Empty(t, s.next("").wrong, "a lost cluster lowers the budget")
}

// A limit that a single sample passes does not count while a watch may only be late.
func TestLateWatches(t *testing.T) {
	m, err := stage.Listen(t.Context())
	require.NoError(t, err)
	defer m.Close()
	on, err := stage.Open(m.Files)
	require.NoError(t, err)
	defer on.Close()
	s := newSampler(on, nil, newTraffic(on, nil), time.Minute)
	s.add(counts{available: []int{3, 3, 0}, present: 6}, 6)
	s.add(counts{available: []int{3, 0, 0}, present: 6}, 6)
	require.Empty(t, s.next("").wrong)
	s.within = s.within.Add(-time.Minute)
	s.add(counts{available: []int{3, 0, 0}, present: 6}, 6)
	require.Len(t, s.next("").wrong, 1)
}

func TestUsage(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"help":        {[]string{"-h"}, 0, "NAME=PATH"},
		"an argument": {[]string{"x"}, 2, `unexpected argument "x"`},
		"no name":     {[]string{"-kubeconfig", "path"}, 2, "want NAME=PATH"},
		"short grace": {[]string{"-grace", "900ms"}, 2, "-grace: 900ms is too short"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.Equal(t, test.code, availability(t.Context(), test.args, &stdout, &stderr))
			require.Contains(t, stderr.String(), test.want)
			require.Empty(t, stdout.String())
		})
	}
}
