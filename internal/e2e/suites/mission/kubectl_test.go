// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mission_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/build"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

// kubectl runs the pinned kubectl against one plane.
type kubectl struct {
	program    string
	kubeconfig string
}

func newKubectl(t *testing.T, p *plane.Plane) kubectl {
	t.Helper()
	programs, err := build.Programs(t.Context(), build.Kubectl)
	require.NoError(t, err)
	return kubectl{program: programs[build.Kubectl], kubeconfig: planetest.WriteKubeconfig(t, p.Name(), p.Kubeconfig())}
}

// run returns the output of kubectl, and an error if kubectl failed. kubectl gets the manifest as
// its standard input.
func (k kubectl) run(t *testing.T, manifest string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), k.program, append([]string{"--kubeconfig", k.kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
	cmd.Stdin = strings.NewReader(manifest)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// must runs kubectl, and fails the test if kubectl fails.
func (k kubectl) must(t *testing.T, manifest string, args ...string) string {
	t.Helper()
	out, err := k.run(t, manifest, args...)
	require.NoError(t, err, "kubectl %s:\n%s", strings.Join(args, " "), out)
	return out
}

// refused runs kubectl, and requires that kubectl fails and prints these words.
func (k kubectl) refused(t *testing.T, words, manifest string, args ...string) {
	t.Helper()
	out, err := k.run(t, manifest, args...)
	require.Error(t, err, "kubectl %s succeeded:\n%s", strings.Join(args, " "), out)
	require.Contains(t, out, words)
}

// api installs the CRDs in a plane and returns its clients.
func api(t *testing.T, p *plane.Plane) region.API {
	t.Helper()
	clients, err := region.APIFor(p.Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(t.Context(), clients, config.InstallOptions{})
	require.NoError(t, err)
	return clients
}
