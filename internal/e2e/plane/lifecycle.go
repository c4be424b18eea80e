// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/atoll-dev/atoll/internal/e2e/build"
)

// ErrStopped is the error of Kill, Pause, Resume, Restart, Save, Restore and RestoreSnapshot after
// Stop.
var ErrStopped = errors.New("the plane was stopped")

// Stop ends all processes at once, waits for their end, releases the port, and removes the
// temporary directory unless Keep was called. It is idempotent. It fails, and stops nothing, if ctx
// ends while another call starts or stops processes. It also fails if the directory cannot be
// removed.
func (p *Plane) Stop(ctx context.Context) error {
	if err := p.take(ctx); err != nil {
		return err
	}
	defer p.give()
	if p.stopped {
		return nil
	}
	p.stopped = true
	p.killProcesses()
	p.release()
	if p.temporary && !p.keep.Load() {
		if err := os.RemoveAll(p.dir); err != nil {
			return fmt.Errorf("%s: stopping: %w", p.name, err)
		}
	}
	return nil
}

// Kill ends all processes without warning, as the loss of a machine would, and waits for their end.
// Connections are refused until Restart.
func (p *Plane) Kill(ctx context.Context) error {
	return p.inTurn(ctx, "kill", func() error {
		p.killProcesses()
		return nil
	})
}

// Restart stops the running processes in an orderly way, and starts the plane again with the same
// data, address, certificates and tokens. It also works after Kill and after a failed Restart. ctx
// limits the time until the plane is ready. If the plane is not ready by then, Restart fails and
// kills all processes of the plane.
func (p *Plane) Restart(ctx context.Context) error {
	return p.inTurn(ctx, "restart", func() error {
		p.end(ctx)
		return p.begin(ctx)
	})
}

// Pause freezes the API server: the kernel still accepts its connections, but no request is
// answered until Resume. The other processes continue.
func (p *Plane) Pause(ctx context.Context) error {
	return p.inTurn(ctx, "pause", func() error {
		if err := p.signalAPIServer(syscall.SIGSTOP); err != nil {
			return err
		}
		for _, process := range p.processes {
			if process.name == build.APIServer {
				return process.frozen()
			}
		}
		return nil
	})
}

// Resume lets a frozen API server continue. It does not wait until the server answers.
func (p *Plane) Resume(ctx context.Context) error {
	return p.inTurn(ctx, "resume", func() error { return p.signalAPIServer(syscall.SIGCONT) })
}

func (p *Plane) signalAPIServer(sig syscall.Signal) error {
	for _, process := range p.processes {
		if process.name == build.APIServer {
			return process.signal(sig)
		}
	}
	return fmt.Errorf("%s does not run", build.APIServer)
}

func (p *Plane) killProcesses() {
	for _, process := range slices.Backward(p.processes) {
		process.kill()
	}
	p.processes = nil
}

// inTurn runs do while no other call starts or stops processes.
func (p *Plane) inTurn(ctx context.Context, what string, do func() error) error {
	if err := p.take(ctx); err != nil {
		return err
	}
	defer p.give()
	if p.stopped {
		return fmt.Errorf("%s: %s: %w", p.name, what, ErrStopped)
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s: %s: %w", p.name, what, err)
	}
	return nil
}

// take waits for the turn. It takes a free turn even if ctx has ended, so that Stop cleans up after
// a test that ran out of time.
func (p *Plane) take(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: waiting for another call that starts or stops it: %w", p.name, context.Cause(ctx))
	}
}

func (p *Plane) give() { <-p.turn }
