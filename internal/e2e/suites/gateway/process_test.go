// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/build"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// soon is the timeout of each condition. It is much longer than a condition takes, since the machine may be busy.
const soon = 2 * time.Minute

// compile builds the program.
func compile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "atoll-gateway")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	cmd.Dir = program
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// replica is a process of the gateway.
type replica struct {
	world           *world
	dir             string // its own folder, which a restart keeps
	log             *output
	address, health string
	stop            func() // interrupts it and requires the exit code 0
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

// start runs a gateway with its own folder, and waits until it is ready.
func (w *world) start(dir string) *replica {
	w.t.Helper()
	r := &replica{world: w, dir: dir, log: &output{}}
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), w.binary, "--config="+w.configure(dir))
	cmd.Stdout, cmd.Stderr = r.log, r.log
	require.NoError(w.t, cmd.Start())
	r.stop = sync.OnceFunc(func() {
		require.NoError(w.t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(w.t, cmd.Wait(), "%s", r.log)
	})
	w.t.Cleanup(func() {
		r.stop()
		if w.t.Failed() {
			w.t.Logf("%s:\n%s", filepath.Base(dir), r.log)
		}
	})
	planetest.Eventually(w.t, soon, "the gateway serves", func(context.Context) error { return r.listens() })
	planetest.Eventually(w.t, soon, "the gateway is ready", func(ctx context.Context) error {
		code, text := r.probe(ctx, "/readyz")
		if code != http.StatusOK {
			return fmt.Errorf("%d: %s", code, text)
		}
		return nil
	})
	return r
}

// listens reads the addresses that the gateway has logged.
func (r *replica) listens() error {
	for line := range strings.Lines(r.log.String()) {
		var entry struct{ Msg, Address, Health string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "The gateway serves" {
			r.address, r.health = "https://"+entry.Address, "http://"+entry.Health
			return nil
		}
	}
	return errors.New("it does not serve yet")
}

// probe gets a path of the health server. The code is zero if there is no answer.
func (r *replica) probe(ctx context.Context, path string) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.health+path, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, fmt.Sprint(string(body), err)
}

// caller is a user of a gateway.
type caller struct {
	flags []string // of kubectl
}

// alice has a client certificate and is in the group dev; the group system:masters in it is ignored.
func (w *world) alice() caller {
	w.t.Helper()
	certificate, key := w.clients.client(w.t, "alice", "dev", "system:masters")
	w.write("alice.crt", certificate)
	w.write("alice.key", key)
	return caller{[]string{"--client-certificate=" + w.path("alice.crt"), "--client-key=" + w.path("alice.key")}}
}

// kubectl runs the real kubectl as a caller, at a path of the gateway.
func (r *replica) kubectl(c caller, path string, args ...string) (string, error) {
	r.world.t.Helper()
	programs, err := build.Programs(r.world.t.Context(), build.Kubectl)
	require.NoError(r.world.t, err)
	flags := append([]string{
		"--server=" + r.address + path, "--certificate-authority=" + r.world.path(mounted+"/tls/tls.crt"), "--kubeconfig=/dev/null",
		"--cache-dir=" + filepath.Join(r.dir, "kubectl"),
	}, c.flags...)
	cmd := exec.CommandContext(r.world.t.Context(), programs[build.Kubectl], append(flags, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
