// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/atoll-dev/atoll/internal/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder returns the path of a configuration, whose central plane does not answer.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubeconfig"), logtest.Kubeconfig(), 0o600))
	path := filepath.Join(dir, "manager.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(`
apiVersion: manager.atoll.dev/v1alpha1
kind: ManagerConfiguration
central: {kubeconfigFile: DIR/kubeconfig}
identity: a
health: {address: "127.0.0.1:0"}
`, "DIR", dir)), 0o600))
	return path
}

// TestRun checks that the program logs the lines of its loops, and ends with 0 when it is interrupted.
func TestRun(t *testing.T) {
	defer klog.SetLogger(logr.Discard())
	path := folder(t)
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"--config", path, "--check"}, &stdout, &stderr), stderr.String())
	require.Empty(t, stderr.String())

	ctx, cancel := context.WithCancel(t.Context())
	lines := logtest.New()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"--config", path}, &stdout, lines) }()
	lines.Await(t, `"msg":"The manager runs"`, `"identity":"a"`, `"health":"127.0.0.1:`)
	lines.Await(t, `"logger":"members"`, "connection refused")
	lines.Await(t, `"logger":"master"`, "connection refused")
	cancel()
	require.Zero(t, <-ended)
	require.Empty(t, stdout.String())
}

// A wrong command line, configuration or file ends the program with 2 and one line, before anything is started.
func TestRefused(t *testing.T) {
	defer klog.SetLogger(logr.Discard())
	path := folder(t)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, tt := range []struct {
		args    []string
		replace [2]string
		want    string
	}{
		{args: nil, want: "--config is missing"},
		{args: []string{"--config", path, "more"}, want: "there are other arguments"},
		{args: []string{"--config", path + "x"}, want: "no such file"},
		{args: []string{"--config", path, "--rights", "moon"}, want: `"moon" is not known; accepted: plane or peer`},
		{args: []string{"--config", path}, replace: [2]string{"identity: a", "identity: A"}, want: path + `: identity: "A" is no name; accepted: `},
		{args: []string{"--config", path, "--check"}, replace: [2]string{"/kubeconfig}", "/none}"}, want: path + ": central.kubeconfigFile: "},
		{args: []string{"--config", path}, replace: [2]string{"central: {", "central: {namespace: X, "}, want: path + ": central.namespace: "},
	} {
		require.NoError(t, os.WriteFile(path, bytes.Replace(good, []byte(tt.replace[0]), []byte(tt.replace[1]), 1), 0o600))
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), tt.args, &stdout, &stderr), "%v", tt.args)
		require.Contains(t, stderr.String(), tt.want)
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
	}
	var stderr bytes.Buffer
	require.Equal(t, 2, run(t.Context(), []string{"--no-such-flag"}, &stderr, &stderr))
	require.Zero(t, run(t.Context(), []string{"--help"}, &stderr, &stderr))
}

// An address that is in use is a failure, not a wrong command line: it may be free the next time.
func TestFailed(t *testing.T) {
	defer klog.SetLogger(logr.Discard())
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	path := folder(t)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Replace(good, []byte("127.0.0.1:0"), []byte(listener.Addr().String()), 1), 0o600))
	lines := logtest.New()
	require.Equal(t, 1, run(t.Context(), []string{"--config", path}, lines, lines))
	lines.Await(t, "atoll-manager: health.address: ", "address already in use")
}

// The flag adds a file to the configuration, and needs workloads there.
func TestWorkloadTypes(t *testing.T) {
	defer klog.SetLogger(logr.Discard())
	path := folder(t)
	types := filepath.Join(filepath.Dir(path), "types.yaml")
	require.NoError(t, os.WriteFile(types, []byte(`{apiVersion: splitter.atoll.dev/v1alpha1, kind: WorkloadType, metadata: {name: xs.example.org}, spec: {
		resource: {group: example.org, version: v1, resource: xs, kind: X}, division: OneCluster,
		references: [{path: spec.check, resource: checks, group: example.org, version: v1}]}}`), 0o600))
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitUsage, run(t.Context(), []string{"--config", path, "--check", "--workload-types", types}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "workloads: is not set")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(content, "workloads: {}\n"...), 0o600))
	require.Zero(t, run(t.Context(), []string{"--config", path, "--check", "--workload-types", types}, &stdout, &stderr), stderr.String())
	require.Zero(t, run(t.Context(), []string{"--config", path, "--rights", "plane", "--workload-types", types}, &stdout, &stderr), stderr.String())
	for _, resource := range []string{"xs", "checks", "deployments", "placementpolicies", "poddisruptionbudgets", "workloadtypes"} {
		require.Contains(t, stdout.String(), "- "+resource+"\n")
	}
	require.Equal(t, exitUsage, run(t.Context(), []string{"--config", path, "--check", "--workload-types", "/no/such"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "workloads.typeFiles[0]")
}
