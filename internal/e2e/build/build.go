// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Programs returns the path of the executable for each name. It builds the programs that are in
// neither KUBEBUILDER_ASSETS nor the cache. No names means all programs.
//
// It blocks until all executables exist, a build fails or ctx ends, and reports each build on
// standard error. It is idempotent and safe for concurrent use, also by several processes. The
// error of a failed build names the program, and ends with the last lines of the compiler.
func Programs(ctx context.Context, names ...string) (map[string]string, error) {
	b := &builder{log: os.Stderr, assets: os.Getenv("KUBEBUILDER_ASSETS")}
	return b.programs(ctx, programs(), names)
}

// builder builds programs of one module into one cache. An empty module stands for the pinned
// module, and an empty cache for the user's cache.
type builder struct {
	log    io.Writer
	assets string
	module string
	cache  string
}

func (b *builder) programs(ctx context.Context, known []program, names []string) (map[string]string, error) {
	paths := make(map[string]string, len(names))
	var missing []program
	for _, name := range names {
		if !slices.ContainsFunc(known, func(p program) bool { return p.name == name }) {
			return nil, fmt.Errorf("unknown program %q: want one of %s", name, nameList(known))
		}
	}
	for _, p := range known {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		if path := filepath.Join(b.assets, p.name); b.assets != "" && executable(path) {
			paths[p.name] = path
			continue
		}
		missing = append(missing, p)
	}
	caches := map[string]*cache{}
	for _, p := range missing {
		if caches[p.folder] == nil {
			cache, err := b.open(ctx, p.folder)
			if err != nil {
				return nil, err
			}
			caches[p.folder] = cache
		}
		path, err := caches[p.folder].program(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", p.name, err)
		}
		paths[p.name] = path
	}
	return paths, nil
}

// program returns the executable of p. It builds the executable if the cache lacks it.
func (c *cache) program(ctx context.Context, p program) (string, error) {
	path := filepath.Join(c.dir, p.name)
	if executable(path) {
		return path, nil
	}
	return path, c.once(ctx, path, func(piece string) error { return c.compile(ctx, p, piece) })
}

// compile builds p into the file at path.
func (c *cache) compile(ctx context.Context, p program, path string) error {
	flags, err := c.ldflags(ctx, p)
	if err != nil {
		return err
	}
	var output bytes.Buffer
	args := []string{"build", "-trimpath", "-tags", p.tags, "-ldflags", flags, "-o", path}
	if p.edit != nil {
		modfile, err := c.edited(ctx, p.edit, filepath.Dir(path))
		if err != nil {
			return err
		}
		args = append(args, "-modfile", modfile)
	}
	cmd := c.goCommand(ctx, append(args, p.pkg)...)
	cmd.Stdout, cmd.Stderr = &output, &output

	c.say("%s: building into %s; once per version, usually %s on two idle cores", p.name, c.dir, p.usual)
	begin := time.Now()
	stop := c.sayElapsed(p.name, begin)
	err = cmd.Run()
	stop()
	elapsed := time.Since(begin).Round(100 * time.Millisecond)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted after %s: %w", elapsed, context.Cause(ctx))
		}
		return fmt.Errorf("go build %s in %s: %w; its last lines:\n%s", p.pkg, c.module, err, tail(output.String(), 20))
	}
	c.say("%s: built in %s", p.name, elapsed)
	return nil
}

// goCommand returns the go command in the pinned module. The command gets a process group of its
// own, so that the end of ctx also kills its compilers.
func (c *cache) goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = c.module
	// The environment of this module (a workspace, a vendor directory, cgo) must not change the
	// content of the cache.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false", "CGO_ENABLED=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// sayElapsed reports every half minute that a build still runs, until stop is called.
func (c *cache) sayElapsed(name string, begin time.Time) (stop func()) {
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		ticker := time.NewTicker(30 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				c.say("%s: still building after %s", name, time.Since(begin).Round(time.Second))
			}
		}
	}()
	return func() { close(done); <-finished }
}

func (c *cache) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.log, "e2e: "+format+"\n", args...)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func nameList(known []program) string {
	names := make([]string, 0, len(known))
	for _, p := range known {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
