// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/build"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// kubectl runs the pinned kubectl against one plane.
type kubectl struct {
	program, kubeconfig string
}

func newKubectl(t *testing.T, p *plane.Plane) kubectl {
	t.Helper()
	programs, err := build.Programs(t.Context(), build.Kubectl)
	require.NoError(t, err)
	return kubectl{program: programs[build.Kubectl], kubeconfig: planetest.WriteKubeconfig(t, p.Name(), p.Kubeconfig())}
}

// run returns the output of kubectl.
func (k kubectl) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, k.program, append([]string{"--kubeconfig", k.kubeconfig, "--cache-dir", k.kubeconfig + ".cache"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// must runs kubectl, and fails the test if kubectl fails.
func (k kubectl) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := k.run(t.Context(), args...)
	require.NoError(t, err, "kubectl %s:\n%s", strings.Join(args, " "), out)
	return out
}
