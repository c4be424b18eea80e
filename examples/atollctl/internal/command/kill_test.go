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
)

// childEnv makes the test's binary be atollctl.
const childEnv = "ATOLLCTL_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(Run(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// A run may be killed at any moment. Here it is killed at each of its writes:
// before the write has an effect, while others are on their way. The next run
// with the same log finishes it or takes it back, so that an audit finds nothing
// and the same command can be given again.
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
			for n := 1; ; n++ {
				require.Less(t, n, 50, "the command never ends")
				if !killedAt(t, n, test.before, test.killed, test.again) {
					require.Greater(t, n, 2, "the command was never killed")
					return
				}
			}
		})
	}
}

// killedAt kills the command at its nth write. It returns false if the command
// made fewer.
func killedAt(t *testing.T, n int, before [][]string, command []string, again []int) bool {
	t.Helper()
	c := newCell(t)
	c.run(t, exitDone, "peer", "init")
	for _, args := range before {
		c.run(t, exitDone, args...)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], slices.Concat(command, c.flags)...)
	child.Dir, child.Env = c.dir, append(os.Environ(), childEnv+"=1")
	ended := make(chan struct{})
	k := &killer{left: n, strike: func() {
		_ = child.Process.Kill()
		<-ended
	}}
	for _, s := range c.servers {
		s.watch(k)
	}
	require.NoError(t, child.Start())
	err := child.Wait()
	close(ended)
	struck := k.stop()
	for _, s := range c.servers {
		s.watch(nil)
	}
	if !struck {
		require.NoError(t, err)
		return false
	}
	label := fmt.Sprintf("%s, killed at write %d", strings.Join(command, " "), n)
	c.run(t, exitDone, "wal", "recover")
	c.run(t, exitDone, "audit")
	require.Contains(t, again, c.code(t, command...), "%s: the same again: %s", label, c.errOut.String())
	c.run(t, exitDone, "audit")
	c.run(t, exitDone, "wal", "verify")
	return true
}

// killer ends a process at its nth write.
type killer struct {
	mu     sync.Mutex
	left   int
	strike func()
	struck bool
	done   bool
}

// write counts one write and says whether it may go on.
func (k *killer) write() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return !k.struck
	}
	if k.left--; k.left == 0 {
		k.struck, k.done = true, true
		k.strike()
	}
	return !k.struck
}

func (k *killer) stop() (struck bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = true
	return k.struck
}

// cell is a ring of two servers, a directory, and a log.
type cell struct {
	dir     string
	flags   []string
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
	c.flags = append(c.flags, "--wal", filepath.Join(c.dir, "operations.db"))
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
	return s.execute(t.Context(), slices.Concat([]string{"atollctl"}, args, c.flags))
}

func (c *cell) run(t *testing.T, want int, args ...string) {
	t.Helper()
	code := c.code(t, args...)
	require.Equal(t, want, code, "atollctl %s: %s", strings.Join(args, " "), c.errOut.String())
}
