// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestExpand(t *testing.T) {
	files := []kubeconfig{{"a", "/x/a"}, {"b", "/x/b"}}
	require.Equal(t,
		[]string{"demo", "-kubeconfig", "a=/x/a", "-kubeconfig", "b=/x/b", "-v"},
		expand([]string{"demo", "{kubeconfigs}", "-v"}, files))
	require.Equal(t, []string{"demo", "{kubeconfig}"}, expand([]string{"demo", "{kubeconfig}"}, files))
	require.Equal(t, "ATOLL_KUBECONFIGS=a=/x/a,b=/x/b", environment(files))
}

func TestUsage(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"help":         {[]string{"-h"}, 0, "how many planes"},
		"unknown flag": {[]string{"-m", "3"}, usageCode, "flag provided but not defined: -m"},
		"none":         {[]string{"-n", "0"}, usageCode, "-n is 0 and -nodes is 1: want at least 1 of each"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			require.Equal(t, test.code, run(t.Context(), test.args, &stderr))
			require.Contains(t, stderr.String(), test.want)
		})
	}
}

func TestPlanes(t *testing.T) {
	names := func(args ...string) (names []string) {
		var stderr bytes.Buffer
		s, err := parse(args, &stderr)
		require.NoError(t, err)
		for _, o := range s.planes() {
			require.Equal(t, o.Name != "upstream" && s.pods, o.Pods)
			if o.Pods {
				require.Equal(t, s.nodes, o.Nodes)
			} else {
				require.Zero(t, o.Nodes, "nodes come with pods only")
			}
			names = append(names, o.Name)
		}
		return names
	}
	require.Equal(t, []string{"eu-west", "us-east"}, names("-n", "2"))
	require.Equal(t, []string{"upstream", "cluster-1", "cluster-2"}, names("-n", "2", "-pods", "-nodes", "3", "-upstream"))
}

func TestCommandExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		code   int
	}{
		"success": {"exit 0", 0},
		"failure": {"exit 7", 7},
		"signal":  {"kill -KILL $$", 137},
	} {
		t.Run(name, func(t *testing.T) {
			code, err := runCommand(t.Context(), []string{"sh", "-c", test.script}, nil)
			require.NoError(t, err)
			require.Equal(t, test.code, code)
		})
	}
	_, err := runCommand(t.Context(), []string{"/no/such/command"}, nil)
	require.ErrorContains(t, err, "running /no/such/command")
}

func TestCommandRunsAgainstPlanes(t *testing.T) {
	planetest.SkipShort(t)
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"-n", "2", "-dir", dir, "--",
		"sh", "-c", `echo "$ATOLL_KUBECONFIGS $*" > "$0"; exit 7`, seen, "{kubeconfigs}"}, &stderr)
	require.Equal(t, 7, code, stderr.String())
	content, err := os.ReadFile(seen)
	require.NoError(t, err)
	west, east := filepath.Join(dir, "eu-west.kubeconfig"), filepath.Join(dir, "us-east.kubeconfig")
	require.Equal(t, "eu-west="+west+",us-east="+east+" -kubeconfig eu-west="+west+" -kubeconfig us-east="+east,
		strings.TrimSpace(string(content)))
	require.Contains(t, stderr.String(), "planes: stopped")
	require.ErrorIs(t, listNamespaces(t.Context(), config(t, west)), syscall.ECONNREFUSED)
}

func TestWaitsForInterrupt(t *testing.T) {
	planetest.SkipShort(t)
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	stderr := writerFunc(func(line []byte) (int, error) {
		if strings.Contains(string(line), "interrupt (Ctrl-C)") {
			require.NoError(t, listNamespaces(ctx, config(t, filepath.Join(dir, "eu-west.kubeconfig"))))
			interrupt()
		}
		return len(line), nil
	})
	require.Equal(t, 0, run(ctx, []string{"-n", "1", "-dir", dir}, stderr))
	require.Error(t, ctx.Err())
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func config(t *testing.T, path string) *rest.Config {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	config, err := plane.ConfigOf(content)
	require.NoError(t, err)
	return config
}

func listNamespaces(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(ctx, metav1.ListOptions{})
	return err
}
