// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Stages returns the path of a file with KWOK's "fast" stages: a node is ready
// at once, a pod runs at once, a Job's pod completes at once, a deleted pod is
// gone at once. The stages come from KWOK's own module in the pinned version.
//
// It is idempotent and safe for concurrent use, as [Programs] is.
func Stages(ctx context.Context) (string, error) {
	c, err := (&builder{log: os.Stderr}).open(ctx, "")
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, "kwok-stages.yaml")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	err = c.once(ctx, path, func(piece string) error { return c.copyStages(ctx, piece) })
	if err != nil {
		return "", fmt.Errorf("copying KWOK's stages: %w", err)
	}
	return path, nil
}

func (c *cache) copyStages(ctx context.Context, path string) error {
	output, err := c.goOutput(ctx, "mod", "download", "-json", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(output), &module); err != nil {
		return fmt.Errorf("reading the output of go mod download: %w", err)
	}
	var all bytes.Buffer
	for _, name := range []string{
		"node/fast/node-initialize.yaml",
		"pod/fast/pod-ready.yaml",
		"pod/fast/pod-complete.yaml",
		"pod/fast/pod-delete.yaml",
	} {
		stage, err := os.ReadFile(filepath.Join(module.Dir, "kustomize", "stage", name))
		if err != nil {
			return err
		}
		all.WriteString("---\n")
		all.Write(stage)
	}
	return os.WriteFile(path, all.Bytes(), 0o644)
}
