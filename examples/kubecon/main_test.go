// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/examples/internal/stage"
	"github.com/atoll-dev/atoll/region"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write testdata/story.txt anew")

// mask replaces text that differs between runs: the ready replicas over time, and the duration of
// the story.
func mask(story string) string {
	story = regexp.MustCompile(`(?m)(^ *[0-9.]+s +[0-9]+ .*\n)+`).ReplaceAllString(story, "(ready replicas over time)\n")
	return regexp.MustCompile(`in [0-9hms]+\.`).ReplaceAllString(story, "in TIME.")
}

// The machine of a test may pause all syncers for longer than the default grace period. The
// replicas of a cluster that is not cut off would then be rescheduled, so the test sets a longer
// grace period.
func TestStory(t *testing.T) {
	var stdout, stderr bytes.Buffer
	picture := filepath.Join(t.TempDir(), "ready.svg")
	require.Zero(t, kubecon(t.Context(), []string{"-grace", "15s", "-chart", picture}, &stdout, &stderr), "%s%s", &stdout, &stderr)
	require.Empty(t, stderr.String())

	golden := filepath.Join("testdata", "story.txt")
	got := mask(stdout.String())
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the story differs (-%s +now):\n%s\n%s", golden, diff, &stdout)
	}
	requireTables(t, stdout.String())
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(svg, new(struct{})))
	require.Equal(t, 3, strings.Count(string(svg), ` d="M`), "the curves of three clusters")
	require.Regexp(t, `(?m)^ +[0-9.]+s +6  ######  +cluster-1 6, cluster-2 is cut off$`, stdout.String())
}

// requireTables requires that the story contains the tables of the demonstration's document,
// verbatim and in their order.
func requireTables(t *testing.T, story string) {
	t.Helper()
	tables, err := os.ReadFile(filepath.Join("testdata", "document.txt"))
	require.NoError(t, err)
	for table := range strings.SplitSeq(strings.TrimSpace(string(tables)), "\n\n") {
		_, after, found := strings.Cut(story, table+"\n")
		require.True(t, found, "this is not there, or not in its place:\n%s\nbut this is left:\n%s", table, story)
		story = after
	}
}

// canceler cancels a story when it prints a text.
type canceler struct {
	bytes.Buffer
	at     string
	cancel context.CancelFunc
}

func (c *canceler) Write(p []byte) (int, error) {
	n, err := c.Buffer.Write(p)
	if strings.Contains(string(p), c.at) {
		c.cancel()
	}
	return n, err
}

// An interrupted story removes its objects, also if a cluster is cut off.
func TestInterrupted(t *testing.T) {
	m, err := stage.Listen(t.Context())
	require.NoError(t, err)
	defer m.Close()
	on, err := stage.Open(m.Files)
	require.NoError(t, err)
	defer on.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	script := newScript()
	controllers := runClusters(ctx, m, script)
	out := &canceler{at: "cluster-2 is cut off", cancel: cancel}
	require.ErrorContains(t, tell(ctx, play{Stage: on, script: script, grace: defaultGrace}, &narrator{w: out}), "chapter 3, A cluster fails: ")
	require.NoError(t, controllers())
	require.NotContains(t, out.String(), "It comes back")

	list, err := on.Upstream.Dynamic().Resource(syncTargets).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	for _, conn := range []*region.Conn{on.Upstream, on.Clusters[0].Conn, on.Clusters[1].Conn, on.Clusters[2].Conn} {
		list, err := conn.Dynamic().Resource(deployments).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, list.Items)
	}
}

func TestUsage(t *testing.T) {
	m, err := stage.Listen(t.Context())
	require.NoError(t, err)
	defer m.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, m.Files[0].Data, 0o600))
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"help":         {[]string{"-h"}, 0, "NAME=PATH"},
		"an argument":  {[]string{"x"}, 2, `unexpected argument "x"`},
		"no name":      {[]string{"-kubeconfig", path}, 2, "want NAME=PATH"},
		"other name":   {[]string{"-kubeconfig", "a=" + path}, 2, "want one of upstream, cluster-1"},
		"too few":      {[]string{"-kubeconfig", "upstream=" + path}, 2, "1 are given"},
		"twice":        {[]string{"-kubeconfig", "cluster-1=" + path, "-kubeconfig", "cluster-1=" + path}, 2, "cluster-1 is given twice"},
		"short grace":  {[]string{"-grace", "900ms"}, 2, "-grace: 900ms is too short for heartbeats every 500ms: want at least 1s"},
		"no such file": {[]string{"-kubeconfig", "cluster-1=/no/such/file"}, 2, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.Equal(t, test.code, kubecon(t.Context(), test.args, &stdout, &stderr))
			require.Contains(t, stderr.String(), test.want)
			require.Empty(t, stdout.String())
		})
	}
}
