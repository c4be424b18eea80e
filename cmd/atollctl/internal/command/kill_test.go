// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// childEnv names the environment variable that makes the test binary run as atollctl.
const childEnv = "ATOLLCTL_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(Run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestKill kills a command before each of its writes to a server, so that this write has no effect,
// and after each of its requests to each server. The next "wal recover" with the same log must
// finish or abort the operation. After that an audit finds nothing, and the command can be
// repeated.
func TestKill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a process for each write of each command")
	}
	account := []string{"account", "add", "-f", "account.yaml", "--target", "eu"}
	cluster := []string{"sc", "add", "db", "-n", "acme", "--target", "us", "-f", "cluster.yaml"}
	for _, test := range []struct {
		name   string
		before [][]string
		killed []string
		again  []int // exit codes of the same command, after the recovery
	}{
		{"add an Account", nil, account, []int{exitDone}},
		{"update an Account", [][]string{account}, []string{"account", "update", "-f", "updated.yaml"}, []int{exitDone}},
		{"remove an Account", [][]string{account}, []string{"account", "remove", "acme"}, []int{exitDone, exitFailed}},
		{"add a ServiceCluster", [][]string{account}, cluster, []int{exitDone, exitConflict}},
		{"remove a ServiceCluster", [][]string{account, cluster}, []string{"sc", "remove", "db", "-n", "acme"}, []int{exitDone, exitFailed}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCell(t)
			c.run(t, exitDone, "peer", "init")
			for _, moment := range c.moments() {
				for n := 1; ; n++ {
					require.Less(t, n, 50, "the command never ends")
					// Each run gets a new log: aborted operations stay in a log for some minutes,
					// and each run would check them.
					c.log = filepath.Join(c.dir, fmt.Sprintf("%s %d.db", moment.name, n))
					c.run(t, exitDone, "sc", "remove", "db", "-n", "acme", "--ignore-not-found")
					c.run(t, exitDone, "account", "remove", "acme", "--ignore-not-found")
					for _, args := range test.before {
						c.run(t, exitDone, args...)
					}
					if !c.killedAt(t, moment, n, test.killed, test.again) {
						require.Greater(t, n, 2, "the command was never killed %s", moment.name)
						break
					}
				}
			}
		})
	}
}

// moment is a kind of event. arm makes the killer kill its process the nth time that the event
// happens.
type moment struct {
	name   string
	arm    func(k *killer, n int)
	disarm func()
}

func (c *cell) moments() []moment {
	all := []moment{{
		name: "before a write",
		arm: func(k *killer, n int) {
			k.left = n
			for _, s := range c.servers {
				s.watch(k)
			}
		},
		disarm: func() {
			for _, s := range c.servers {
				s.watch(nil)
			}
		},
	}}
	for i, s := range c.servers {
		all = append(all, moment{
			name: fmt.Sprintf("after a request to server %d", i),
			arm: func(k *killer, n int) {
				s.Inject(regiontest.Fault{Skip: n - 1, Do: regiontest.CrashAfter(k.kill)})
			},
			disarm: s.Reset,
		})
	}
	return all
}

// killedAt kills the command the nth time that the event m happens, and checks the result. It
// returns false if the command ended earlier.
func (c *cell) killedAt(t *testing.T, m moment, n int, command []string, again []int) bool {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], slices.Concat(command, c.flags, []string{"--wal", c.log, "--create-wal"})...)
	child.Dir, child.Env = c.dir, append(os.Environ(), childEnv+"=1")
	k := &killer{process: child, ended: make(chan struct{})}
	m.arm(k, n)
	err := k.run()
	c.rest(t)
	m.disarm()
	if !k.struck {
		require.NoError(t, err)
		return false
	}
	c.run(t, exitDone, "wal", "recover")
	c.run(t, exitDone, "audit")
	require.Contains(t, again, c.code(t, command...), "killed %s, %d: the same again: %s", m.name, n, c.errOut.String())
	c.run(t, exitDone, "audit")
	c.run(t, exitDone, "wal", "verify")
	return true
}

// rest waits until the servers have finished every request that they received. A request of the
// killed process may block in a server for a while, and must not take effect after the moment is
// disarmed.
func (c *cell) rest(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(c.servers, func(s *server) bool {
			return slices.ContainsFunc(s.Requests(), func(r regiontest.Request) bool { return r.Code == 0 && r.Err == nil })
		})
	}, time.Minute, 5*time.Millisecond, "a request is still in progress")
}

// killer starts a process, and kills it at the event for which a moment has armed the killer.
type killer struct {
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended

	mu     sync.Mutex
	left   int // writes until it kills the process; zero means never
	struck bool
}

// run starts the process and waits for its end.
func (k *killer) run() error {
	k.mu.Lock()
	err := k.process.Start()
	k.mu.Unlock()
	if err != nil {
		return err
	}
	err = k.process.Wait()
	close(k.ended)
	k.mu.Lock()
	defer k.mu.Unlock()
	return err
}

// write counts one write and reports whether it may proceed.
func (k *killer) write() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left--; k.left == 0 {
		k.strike()
	}
	return !k.struck
}

func (k *killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.strike()
}

// strike kills the process and waits for its end.
func (k *killer) strike() {
	k.struck = true
	_ = k.process.Process.Kill()
	<-k.ended
}

// cell is the environment of a test: a ring of two servers, a directory for files, and the path of
// a log.
type cell struct {
	dir     string
	log     string
	flags   []string // that name the peers
	servers []*server
	errOut  bytes.Buffer
}

func newCell(t *testing.T) *cell {
	t.Helper()
	c := &cell{dir: t.TempDir()}
	for name, text := range map[string]string{
		"account.yaml": accountYAML,
		"updated.yaml": strings.Replace(accountYAML, "Provider", "Tenant", 1),
		"cluster.yaml": clusterYAML,
	} {
		require.NoError(t, writeFile(filepath.Join(c.dir, name), []byte(text)))
	}
	for _, name := range []string{"eu", "us"} {
		s := newServer(func(f func()) { t.Cleanup(f) }, func(err error) { require.NoError(t, err) }, name, true)
		path := filepath.Join(c.dir, name+".kubeconfig")
		require.NoError(t, writeFile(path, s.kubeconfig))
		c.servers = append(c.servers, s)
		c.flags = append(c.flags, "--kubeconfig", name+"="+path)
	}
	c.log = filepath.Join(c.dir, "operations.db")
	return c
}

// code runs a command and returns its exit code.
func (c *cell) code(t *testing.T, args ...string) int {
	t.Helper()
	for i, arg := range args {
		if filepath.Ext(arg) == ".yaml" {
			args = slices.Clone(args)
			args[i] = filepath.Join(c.dir, arg)
		}
	}
	c.errOut.Reset()
	var out bytes.Buffer
	s := &session{in: strings.NewReader(""), out: &out, errOut: &c.errOut, getenv: func(string) string { return "" }, now: time.Now}
	return s.execute(t.Context(), slices.Concat([]string{"atollctl", "--wal", c.log, "--create-wal"}, args, c.flags))
}

func (c *cell) run(t *testing.T, want int, args ...string) {
	t.Helper()
	code := c.code(t, args...)
	require.Equal(t, want, code, "atollctl %s: %s", strings.Join(args, " "), c.errOut.String())
}
