// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
)

// replica is a gateway or a manager, and its folder, which a restart keeps.
type replica struct {
	w    *world
	name string
	dir  string

	mu              sync.Mutex
	process         *process.Process
	address, health string
}

// startReplica starts a gateway or a manager, as its name begins, and waits until it runs.
func (w *world) startReplica(name string) *replica {
	w.t.Helper()
	r := &replica{w: w, name: name, dir: w.t.TempDir()}
	r.start()
	return r
}

func (r *replica) start() {
	r.w.t.Helper()
	program, args, message := r.w.managerBinary, "--config="+r.w.managerConfig(r.dir), "The manager runs"
	if strings.HasPrefix(r.name, "gateway") {
		program, args, message = r.w.gatewayBinary, "--config="+r.w.gatewayConfig(r.dir), "The gateway serves"
	}
	p := process.Start(r.w.t, r.name, []string{"POD_NAME=" + r.name}, program, args)
	planetest.Eventually(r.w.t, soon, r.name+" runs", func(context.Context) error {
		entry, err := p.Entry(message)
		if err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.process, r.address, r.health = p, fmt.Sprint(entry["address"]), fmt.Sprint(entry["health"])
		return nil
	})
}

// at returns the addresses of the running process.
func (r *replica) at() (address, health string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.address, r.health
}

func (r *replica) ready(ctx context.Context) error {
	_, health := r.at()
	return process.Ready(ctx, health)
}

// live returns nil if the process serves, whether or not it is ready.
func (r *replica) live(ctx context.Context) error {
	_, health := r.at()
	if code, text := process.Probe(ctx, health, "/livez"); code != http.StatusOK {
		return errors.New(text)
	}
	return nil
}

// restart stops the process in order and starts it again, as a rollout does: it waits until the new one passes the check.
func (r *replica) restart(check func(context.Context) error) {
	r.w.t.Helper()
	r.process.Stop()
	r.start()
	planetest.Eventually(r.w.t, soon, r.name+" is there again", check)
}

// reads waits until the process has read files of the given name n times.
func (r *replica) reads(files string, n int) {
	r.w.t.Helper()
	planetest.Eventually(r.w.t, soon, r.name+" reads the "+files, func(context.Context) error {
		if got := r.count(files); got < n {
			return fmt.Errorf("%d of %d times", got, n)
		}
		return nil
	})
}

func (r *replica) count(files string) (n int) {
	for line := range strings.Lines(r.process.Log.String()) {
		if strings.Contains(line, `"msg":"Files were read again"`) && strings.Contains(line, `"files":"`+files+`"`) {
			n++
		}
	}
	return n
}
