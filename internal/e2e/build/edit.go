// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// edit replaces one piece of text in one file of a module on which a program depends. The key of
// the cache does not include the edit, so a program with another edit needs another name.
type edit struct {
	module, file string
	old, new     string
}

// edited copies the module with the edit into dir, and returns a go.mod that replaces the module by
// the copy. The go command does not accept an overlay over the module cache.
func (c *cache) edited(ctx context.Context, e *edit, dir string) (modfile string, err error) {
	original, err := c.goOutput(ctx, "list", "-f", "{{.Module.Dir}}", e.module+"/"+path.Dir(e.file))
	if err != nil {
		return "", err
	}
	source := filepath.Join(dir, "source")
	if err := os.CopyFS(source, os.DirFS(original)); err != nil {
		return "", fmt.Errorf("copying %s: %w", e.module, err)
	}
	name := filepath.Join(source, filepath.FromSlash(e.file))
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(content), e.old); n != 1 {
		return "", fmt.Errorf("%s of %s has %q %d times: want it once", e.file, e.module, e.old, n)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(content), e.old, e.new, 1)), 0o644); err != nil {
		return "", err
	}
	modfile = filepath.Join(dir, "edited.mod")
	for from, to := range map[string]string{"go.mod": modfile, "go.sum": filepath.Join(dir, "edited.sum")} {
		content, err := os.ReadFile(filepath.Join(c.module, from))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return "", err
		}
	}
	_, err = c.goOutput(ctx, "mod", "edit", "-replace", e.module+"="+source, modfile)
	return modfile, err
}
