// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var update = flag.Bool("update", false, "write testdata/story.txt anew")

// mask replaces text that differs between runs.
func mask(story []byte) string {
	for _, m := range []struct{ pattern, with string }{
		{`\([0-9hms.]+\)`, "(TIME)"},
		{`in [0-9hms.]+\.\n`, "in TIME.\n"},
		{`cluster [0-9a-f]{8}`, "cluster UID"},
		{`[0-9a-f]{11}-[0-9a-f]{20}`, "ID"},
		{`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z`, "NOW"},
		{`Process [0-9]+`, "Process PID"},
		{`resource version [0-9]+`, "resource version RV"},
	} {
		story = regexp.MustCompile(m.pattern).ReplaceAll(story, []byte(m.with))
	}
	return string(story)
}

func TestStory(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, quickstart(t.Context(), nil, &stdout, &stderr), "%s%s", &stdout, &stderr)
	require.Empty(t, stderr.String())

	golden := filepath.Join("testdata", "story.txt")
	got := mask(stdout.Bytes())
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the story differs (-%s +now):\n%s", golden, diff)
	}
}

// TestTwiceOnTheSamePeers runs the program twice on peers that outlive it.
func TestTwiceOnTheSamePeers(t *testing.T) {
	m := newMemory(t, "a", "b")
	var args []string
	for _, file := range m.files {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(path, file.Data, 0o600))
		args = append(args, "-kubeconfig", string(file.Peer)+"="+path)
	}
	for range 2 {
		var stdout, stderr bytes.Buffer
		require.Zero(t, quickstart(t.Context(), args, &stdout, &stderr), "%s%s", &stdout, &stderr)
		require.Contains(t, stdout.String(), "All as promised")
		requireNothingLeft(t, m)
	}
}

// TestFailureRemovesWhatItMade makes a late chapter fail. The program then removes its objects.
func TestFailureRemovesWhatItMade(t *testing.T) {
	m := newMemory(t, "a", "b", "c")
	m.servers[1].Inject(regiontest.Fault{
		Verb: "create", Resource: schema.GroupResource{Resource: "configmaps"}, Do: regiontest.Refuse(403),
	})
	ring, err := connect(m.files)
	require.NoError(t, err)
	var stdout bytes.Buffer
	err = run(t.Context(), ring, newNarrator(&stdout))
	require.ErrorContains(t, err, "chapter 7, Requests go straight to their region: ")
	require.Contains(t, stdout.String(), "This failed.")
	require.Contains(t, stdout.String(), "Account acme              removed from a, b, c")
	requireNothingLeft(t, m)
}

func newMemory(t *testing.T, names ...region.PeerName) *memory {
	t.Helper()
	m, err := listen(t.Context(), names...)
	require.NoError(t, err)
	t.Cleanup(m.close)
	return m
}

func requireNothingLeft(t *testing.T, m *memory) {
	t.Helper()
	for i, server := range m.servers {
		api, err := region.APIFor(server.Config())
		require.NoError(t, err)
		for _, kind := range []fanout.Kind{account.Kind(), fanout.ServiceClusters()} {
			list, err := api.Dynamic().Resource(kind.Resource).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Empty(t, list.Items, "%s in %s", kind.Kind, m.files[i].Peer)
		}
	}
}
