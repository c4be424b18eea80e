// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const hello = "package main\n\nfunc main() { println(\"hello\") }\n"

func fake() []program {
	return []program{{name: "hello", pkg: ".", version: "example.com/hello", usual: time.Second}}
}

// newBuilder returns a builder of a module with the given main.go, and the builder's log.
func newBuilder(t *testing.T, source string) (*builder, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	b := &builder{log: log, module: t.TempDir(), cache: t.TempDir()}
	write(t, filepath.Join(b.module, "go.mod"), "module example.com/hello\n\ngo 1.26\n", 0o644)
	write(t, filepath.Join(b.module, "main.go"), source, 0o644)
	return b, log
}

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
}

func TestBuiltOnce(t *testing.T) {
	b, log := newBuilder(t, hello)
	first, err := b.programs(t.Context(), fake(), []string{"hello"})
	require.NoError(t, err)
	require.Contains(t, log.String(), "hello: building into")
	require.Contains(t, log.String(), "hello: built in")
	output, err := exec.CommandContext(t.Context(), first["hello"]).CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(output))

	log.Reset()
	second, err := b.programs(t.Context(), fake(), nil)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Empty(t, log.String())
}

func TestOtherVersionsAreOtherFiles(t *testing.T) {
	b, _ := newBuilder(t, hello)
	first, err := b.programs(t.Context(), fake(), nil)
	require.NoError(t, err)
	write(t, filepath.Join(b.module, "go.mod"), "module example.com/hello\n\ngo 1.26.0\n", 0o644)
	second, err := b.programs(t.Context(), fake(), nil)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
}

// Two processes wait for the lock at the same time; only one builds.
func TestTwoProcessesBuildOnce(t *testing.T) {
	b, _ := newBuilder(t, hello)
	c, err := b.open(t.Context(), "")
	require.NoError(t, err)
	path := filepath.Join(c.dir, "hello")
	unlock, err := lock(t.Context(), path+".lock", func() {})
	require.NoError(t, err)

	var processes []*helper
	for range 2 {
		p := startHelper(t, b)
		require.Contains(t, p.line(t), "another process is building it")
		processes = append(processes, p)
	}
	unlock()
	var built int
	for _, p := range processes {
		stdout, stderr := p.wait(t)
		require.Equal(t, path, stdout)
		built += strings.Count(stderr, "built in")
	}
	require.Equal(t, 1, built)
}

// If a process that held the lock was killed, the next build succeeds, and deletes the partial
// files that the process left.
func TestLockOfKilledProcess(t *testing.T) {
	// The go command of the helper is a script whose build lasts until the test has ended. So the
	// helper holds the lock until the test kills the helper.
	b, _ := newBuilder(t, hello)
	c, err := b.open(t.Context(), "")
	require.NoError(t, err)
	script := t.TempDir()
	goCommand, err := exec.LookPath("go")
	require.NoError(t, err)
	write(t, filepath.Join(script, "go"), "#!/bin/sh\n[ $1 = build ] || exec "+goCommand+" \"$@\"\nwhile [ -e \"$0\" ]; do sleep 0.05; done\n", 0o755)
	p := startHelper(t, b, "PATH="+script+":"+os.Getenv("PATH"))
	require.Contains(t, p.line(t), "hello: building")
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()

	pieces := filepath.Join(c.dir, "hello.partial-*")
	left, err := filepath.Glob(pieces)
	require.NoError(t, err)
	require.Len(t, left, 1)
	write(t, filepath.Join(left[0], "hello"), "half of a program", 0o755)
	_, err = b.programs(t.Context(), fake(), nil)
	require.NoError(t, err)
	left, err = filepath.Glob(pieces)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	b, _ := newBuilder(t, "package main\n\nfunc main() { undefined() }\n")
	_, err := b.programs(t.Context(), fake(), nil)
	require.ErrorContains(t, err, "building hello")
	require.ErrorContains(t, err, "undefined: undefined")
	c, err := b.open(t.Context(), "")
	require.NoError(t, err)
	left, err := filepath.Glob(filepath.Join(c.dir, "hello*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(c.dir, "hello.lock")}, left)

	write(t, filepath.Join(b.module, "main.go"), hello, 0o644)
	_, err = b.programs(t.Context(), fake(), nil)
	require.NoError(t, err)
}

func TestInterrupted(t *testing.T) {
	b, _ := newBuilder(t, hello)
	c, err := b.open(t.Context(), "")
	require.NoError(t, err)
	unlock, err := lock(t.Context(), filepath.Join(c.dir, "hello.lock"), func() {})
	require.NoError(t, err)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	c.log = writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	_, err = c.program(ctx, fake()[0])
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "waiting for the lock")
}

func TestAssets(t *testing.T) {
	b, log := newBuilder(t, hello)
	b.assets = t.TempDir()
	write(t, filepath.Join(b.assets, "hello"), "#!/bin/sh\n", 0o755)
	paths, err := b.programs(t.Context(), fake(), nil)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(b.assets, "hello"), paths["hello"])
	require.Empty(t, log.String())

	b.assets = t.TempDir()
	paths, err = b.programs(t.Context(), fake(), nil)
	require.NoError(t, err)
	require.NotEqual(t, filepath.Join(b.assets, "hello"), paths["hello"])
}

func TestUnknownProgram(t *testing.T) {
	_, err := Programs(t.Context(), "kubelet")
	require.ErrorContains(t, err, `unknown program "kubelet": want one of etcd, kube-apiserver`)
}

// The linker flags of kube-apiserver set the version that the server reports. The test reads the
// version from the pinned module, and checks only the form of the flags.
func TestPinnedVersions(t *testing.T) {
	c, err := (&builder{log: io.Discard, cache: t.TempDir()}).open(t.Context(), "")
	require.NoError(t, err)
	flags, err := c.ldflags(t.Context(), programs()[1])
	require.NoError(t, err)
	require.Regexp(t, `gitVersion=v1\.\d+\.\d+ .*gitMajor=1 .*gitMinor=\d+$`, flags)
}

func TestStages(t *testing.T) {
	path, err := Stages(t.Context())
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, stage := range []string{"node-initialize", "pod-ready", "pod-complete", "pod-delete"} {
		require.Contains(t, string(content), "name: "+stage+"\n")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// helper is the test binary running as another process that builds.
type helper struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr *bufio.Reader
}

func startHelper(t *testing.T, b *builder, env ...string) *helper {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &helper{cmd: exec.CommandContext(t.Context(), self)}
	p.cmd.Env = append(append(os.Environ(), helperModule+"="+b.module, helperCache+"="+b.cache), env...)
	p.cmd.Stdout = &p.stdout
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	p.stderr = bufio.NewReader(stderr)
	require.NoError(t, p.cmd.Start())
	return p
}

func (p *helper) line(t *testing.T) string {
	t.Helper()
	line, err := p.stderr.ReadString('\n')
	require.NoError(t, err)
	return line
}

func (p *helper) wait(t *testing.T) (stdout, stderr string) {
	t.Helper()
	rest, err := io.ReadAll(p.stderr)
	require.NoError(t, err)
	require.NoError(t, p.cmd.Wait(), string(rest))
	return strings.TrimSpace(p.stdout.String()), string(rest)
}
