// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

// kubeconfig is the name of a plane and the path of its kubeconfig.
type kubeconfig struct {
	plane, path string
}

func (k kubeconfig) String() string { return k.plane + "=" + k.path }

// writeKubeconfigs writes DIR/NAME.kubeconfig for each plane.
func writeKubeconfigs(dir string, planes []*plane.Plane) ([]kubeconfig, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of the kubeconfigs: %w", err)
	}
	var files []kubeconfig
	for _, p := range planes {
		file := kubeconfig{plane: p.Name(), path: filepath.Join(dir, p.Name()+".kubeconfig")}
		if err := os.WriteFile(file.path, p.Kubeconfig(), 0o600); err != nil {
			return nil, fmt.Errorf("writing the kubeconfig of %s: %w", p.Name(), err)
		}
		files = append(files, file)
	}
	return files, nil
}

// expand replaces the argument {kubeconfigs} by one -kubeconfig per plane.
func expand(args []string, files []kubeconfig) []string {
	var expanded []string
	for _, arg := range args {
		if arg != "{kubeconfigs}" {
			expanded = append(expanded, arg)
			continue
		}
		for _, file := range files {
			expanded = append(expanded, "-kubeconfig", file.String())
		}
	}
	return expanded
}

// environment returns the environment variable with the names and paths of the kubeconfigs.
func environment(files []kubeconfig) string {
	var list []string
	for _, file := range files {
		list = append(list, file.String())
	}
	return "ATOLL_KUBECONFIGS=" + strings.Join(list, ",")
}
