// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Folders of the output.
const (
	sourceFolder  = "source"
	modulesFolder = "modules"
)

// release is a release in its folder.
type release struct {
	dir, version string
	time         time.Time // of the commit; all files of the release have it
	modules      []*module // a module comes after those that it requires
}

// prepare writes source and modules: the release commit with its tags, and the files of a proxy.
func prepare(ctx context.Context, commit, version, dir string) (*release, error) {
	r := &release{dir: dir, version: version}
	source := filepath.Join(dir, sourceFolder)
	if err := r.clone(ctx, commit, source); err != nil {
		return nil, err
	}
	var err error
	if r.modules, err = released(source); err != nil {
		return nil, err
	}
	sums := hashes{}
	for _, m := range r.modules {
		if err := m.pin(source, version, sums); err != nil {
			return nil, fmt.Errorf("module %s: %w", m.path, err)
		}
		if sums[m.path], err = m.publish(source, filepath.Join(dir, modulesFolder), version, r.time); err != nil {
			return nil, fmt.Errorf("module %s: %w", m.path, err)
		}
	}
	return r, r.commit(ctx, source)
}

// clone checks the commit out and reads its time. The clone shares the objects of this repository.
func (r *release) clone(ctx context.Context, commit, source string) error {
	commit, err := git(ctx, ".", "rev-parse", "--verify", "--end-of-options", commit+"^{commit}")
	if err != nil {
		return err
	}
	root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if _, err := git(ctx, ".", "clone", "--quiet", "--shared", "--no-tags", "--no-checkout", root, source); err != nil {
		return err
	}
	if _, err := git(ctx, source, "-c", "core.autocrlf=false", "checkout", "--quiet", "--detach", commit); err != nil {
		return err
	}
	text, err := git(ctx, source, "show", "-s", "--format=%cI", commit)
	if err != nil {
		return err
	}
	r.time, err = time.Parse(time.RFC3339, text)
	r.time = r.time.UTC()
	return err
}

// commit commits the changed files and tags the commit. Names and times are those of the commit below it, so that the
// same release has the same hash everywhere.
func (r *release) commit(ctx context.Context, source string) error {
	text, err := git(ctx, source, "show", "-s", "--format=%an%n%ae%n%cI")
	if err != nil {
		return err
	}
	by := strings.Split(text, "\n")
	if len(by) != 3 {
		return fmt.Errorf("git show: unexpected output %q", text)
	}
	env := []string{
		"GIT_AUTHOR_NAME=" + by[0], "GIT_AUTHOR_EMAIL=" + by[1], "GIT_AUTHOR_DATE=" + by[2],
		"GIT_COMMITTER_NAME=" + by[0], "GIT_COMMITTER_EMAIL=" + by[1], "GIT_COMMITTER_DATE=" + by[2],
	}
	if _, err := git(ctx, source, "add", "--all"); err != nil {
		return err
	}
	if _, err := gitWith(ctx, env, source, "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "release: "+r.version); err != nil {
		return err
	}
	for _, m := range r.modules {
		if _, err := git(ctx, source, "-c", "tag.gpgsign=false", "tag", m.tag(r.version)); err != nil {
			return err
		}
	}
	return nil
}

// refs returns the arguments of git push for the tags.
func refs(modules []*module, version string) string {
	var b strings.Builder
	for _, m := range modules {
		b.WriteString(" " + m.tag(version))
	}
	return b.String()
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	return gitWith(ctx, nil, dir, args...)
}

// gitWith runs git in dir with additional variables and returns its output without the last line break.
func gitWith(ctx context.Context, env []string, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
