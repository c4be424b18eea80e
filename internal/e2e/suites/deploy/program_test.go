// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/build"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

const folder = "../../../../cmd/atoll-manager"

// kubectl runs the real kubectl as an administrator of p.
func kubectl(t *testing.T, p *plane.Plane, args ...string) string {
	t.Helper()
	programs, err := build.Programs(t.Context(), build.Kubectl)
	require.NoError(t, err)
	kubeconfig := planetest.WriteKubeconfig(t, p.Name(), p.Kubeconfig())
	cmd := exec.CommandContext(t.Context(), programs[build.Kubectl], append([]string{"--kubeconfig", kubeconfig, "--cache-dir", kubeconfig + ".cache"}, args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "kubectl %s:\n%s", strings.Join(args, " "), out)
	return string(out)
}

// compile builds the program.
func compile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "atoll-manager")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// replica is a process of the program.
type replica struct {
	log  *output
	stop func()
}

// output collects the output of a process, for concurrent readers.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

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

// start runs the program until stop is called.
func start(t *testing.T, program, kubeconfig, identity string) *replica {
	t.Helper()
	r := &replica{log: &output{}}
	path := filepath.Join(t.TempDir(), "manager.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, configuration, kubeconfig), 0o600))
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--config="+path)
	cmd.Env = append(os.Environ(), "POD_NAME="+identity)
	cmd.Stdout, cmd.Stderr = r.log, r.log
	require.NoError(t, cmd.Start())
	r.stop = sync.OnceFunc(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), "%s", r.log)
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("%s:\n%s", identity, r.log)
		}
	})
	return r
}

// ready returns nil if the replica is ready, else the reason.
func (r *replica) ready(ctx context.Context) error {
	health, err := r.health()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("%d: %s", resp.StatusCode, body))
	}
	return err
}

// health returns the address of the probes, which the replica logs.
func (r *replica) health() (string, error) {
	for line := range strings.Lines(r.log.String()) {
		var entry struct{ Msg, Health string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "The manager runs" {
			return entry.Health, nil
		}
	}
	return "", errors.New("it does not listen yet")
}
