// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// terminationGrace is how long a process may take to end after SIGTERM.
const terminationGrace = 10 * time.Second

// process is one running program of a plane.
type process struct {
	name   string
	log    string
	pid    int
	exited chan struct{} // closed once the process has been reaped
	state  error         // exit error; set before exited is closed
}

// run starts a program in its own process group and appends its output to a file. It does not wait
// until the program is ready.
func run(dir, logs, name, path string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(logs, name+".log"), exited: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("%s: opening its log: %w", name, err)
	}
	// Not CommandContext: the process must outlive the context of the call that starts it.
	cmd := exec.Command(path, args...) //nolint:noctx
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()

	started := make(chan error)
	go func() {
		// Linux sends the parent-death signal when the thread that started the
		// process ends, so this thread must last as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = log.Close() }()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		p.state = cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: starting %s: %w", name, path, err)
	}
	return p, nil
}

// running reports whether the process runs. It returns false once the process has been reaped.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// signal sends sig to the process and all its descendants in its group.
func (p *process) signal(sig syscall.Signal) error {
	if !p.running() {
		return fmt.Errorf("%s: signal %s: %w", p.name, sig, os.ErrProcessDone)
	}
	if err := syscall.Kill(-p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("%s: signal %s: %w", p.name, sig, err)
	}
	return nil
}

// kill ends the process with SIGKILL and waits for its end.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL)
	<-p.exited
}

// terminate asks the process to end, kills it if it is still running after the grace period or when
// ctx ends, and waits for its end.
func (p *process) terminate(ctx context.Context) {
	_ = p.signal(syscall.SIGTERM)
	_ = p.signal(syscall.SIGCONT) // a stopped process does not act on SIGTERM
	ctx, cancel := context.WithTimeout(ctx, terminationGrace)
	defer cancel()
	select {
	case <-p.exited:
	case <-ctx.Done():
		p.kill()
	}
}

// endError means that a process ended without a request to stop it.
type endError struct {
	name, how, log, tail string
}

func (e *endError) Error() string {
	return fmt.Sprintf("%s ended (%s); the end of %s:\n%s", e.name, e.how, e.log, e.tail)
}

// end describes how the process ended, with the last lines of its log.
func (p *process) end() error {
	how := "exit status 0"
	if p.state != nil {
		how = p.state.Error()
	}
	return &endError{p.name, how, p.log, p.logTail()}
}

func (p *process) logTail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
