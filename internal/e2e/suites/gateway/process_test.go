// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
)

// soon is the timeout of each condition. It is much longer than a condition takes, since the machine may be busy.
const soon = 2 * time.Minute

// replica is a process of the gateway.
type replica struct {
	*process.Process
	world           *world
	dir             string // its own folder, which a restart keeps
	address, health string
}

// start runs a gateway with its own folder, and waits until it is ready.
func (w *world) start(dir string) *replica {
	w.t.Helper()
	r := &replica{world: w, dir: dir, Process: process.Start(w.t, filepath.Base(dir), nil, w.binary, "--config="+w.configure(dir))}
	planetest.Eventually(w.t, soon, "the gateway serves", func(context.Context) error {
		entry, err := r.Entry("The gateway serves")
		r.address, r.health = fmt.Sprint("https://", entry["address"]), fmt.Sprint(entry["health"])
		return err
	})
	planetest.Eventually(w.t, soon, "the gateway is ready", func(ctx context.Context) error { return process.Ready(ctx, r.health) })
	return r
}

// caller is a user of a gateway.
type caller struct {
	flags []string // of kubectl
}

// alice has a client certificate and is in the group dev; the group system:masters in it is ignored.
func (w *world) alice() caller {
	w.t.Helper()
	certificate, key := w.clients.Client(w.t, "alice", "dev", "system:masters")
	w.write("alice.crt", certificate)
	w.write("alice.key", key)
	return caller{[]string{"--client-certificate=" + w.path("alice.crt"), "--client-key=" + w.path("alice.key")}}
}

// kubectl runs the real kubectl as a caller, at a path of the gateway.
func (r *replica) kubectl(c caller, path string, args ...string) (string, error) {
	r.world.t.Helper()
	flags := append([]string{
		"--server=" + r.address + path, "--certificate-authority=" + r.world.path(mounted+"/tls/ca.crt"), "--kubeconfig=/dev/null",
		"--cache-dir=" + filepath.Join(r.dir, "kubectl"),
	}, c.flags...)
	return process.Kubectl(r.world.t, "", append(flags, args...)...)
}
