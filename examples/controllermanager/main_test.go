// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/atoll-dev/atoll/internal/logtest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// controller-runtime starts loops with a context without a logger. The program logs the lines of
// its loops nevertheless.
func TestLogs(t *testing.T) {
	defer klog.SetLogger(logr.Discard())
	defer log.SetLogger(logr.Discard())
	dir := t.TempDir()
	kubeconfig, path := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "manager.yaml")
	require.NoError(t, os.WriteFile(kubeconfig, logtest.Kubeconfig(), 0o600))
	require.NoError(t, os.WriteFile(path, []byte("{apiVersion: manager.atoll.dev/v1alpha1, kind: ManagerConfiguration, identity: a, central: {kubeconfigFile: "+kubeconfig+"}, health: {address: '127.0.0.1:0'}}"), 0o600))
	lines := logtest.New()
	logtest.Run(t, func(ctx context.Context) error { return run(ctx, []string{"-config", path}, lines) })
	lines.Await(t, `"logger":"members"`, "connection refused")
	lines.Await(t, `"logger":"master"`, "connection refused")
}

func TestArguments(t *testing.T) {
	for name, field := range successors {
		_, err := parse([]string{"-" + name + "=x"})
		require.EqualError(t, err, "-"+name+" is now the field "+field+" of the file in -config")
	}
	for _, args := range [][]string{nil, {"-config", "x", "y"}} {
		_, err := parse(args)
		require.ErrorContains(t, err, "accepted: -config FILE")
	}
	path, err := parse([]string{"-config", "x"})
	require.NoError(t, err)
	require.Equal(t, "x", path)
}
