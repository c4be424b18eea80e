// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
)

const folder = "../../../../cmd/atoll-manager"

// kubectl runs the real kubectl as an administrator of p.
func kubectl(t *testing.T, p *plane.Plane, args ...string) string {
	t.Helper()
	kubeconfig := planetest.WriteKubeconfig(t, p.Name(), p.Kubeconfig())
	out, err := process.Kubectl(t, "", append([]string{"--kubeconfig", kubeconfig, "--cache-dir", kubeconfig + ".cache"}, args...)...)
	require.NoError(t, err, "kubectl %s:\n%s", strings.Join(args, " "), out)
	return out
}

// replica is a process of the program.
type replica struct{ *process.Process }

// configuration is that of the Deployment, except for the kubeconfig and the port, which the kernel chooses. Sweeps are more
// frequent, and clusters may be at the loopback.
const configuration = `
apiVersion: manager.atoll.dev/v1alpha1
kind: ManagerConfiguration
central: {kubeconfigFile: %q}
fanout: {sweepInterval: 5s}
serviceClusters: {probeInterval: 2s, allowAddresses: [127.0.0.0/8]}
health: {address: "127.0.0.1:0"}
`

// start runs the program until it is stopped.
func start(t *testing.T, program, kubeconfig, identity string) *replica {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manager.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, configuration, kubeconfig), 0o600))
	return &replica{process.Start(t, identity, []string{"POD_NAME=" + identity}, program, "--config="+path)}
}

// ready returns nil if the replica is ready, else the reason.
func (r *replica) ready(ctx context.Context) error {
	entry, err := r.Entry("The manager runs")
	if err != nil {
		return err
	}
	return process.Ready(ctx, fmt.Sprint(entry["health"]))
}
