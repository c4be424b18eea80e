// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Configure writes the configuration that the manifests of the program in the given folder have under name into dir, and
// returns its path. paths replaces the mounts of the Pods. values are the fields that differ, by their paths with dots.
func Configure(t testing.TB, folder, name, dir string, paths *strings.Replacer, values map[string]any) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(folder, "deploy", "config.yaml"))
	require.NoError(t, err)
	var files struct{ Data map[string]string }
	require.NoError(t, yaml.Unmarshal(raw, &files))
	var c map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(paths.Replace(files.Data[name])), &c))
	for path, value := range values {
		require.NoError(t, unstructured.SetNestedField(c, value, strings.Split(path, ".")...))
	}
	data, err := yaml.Marshal(c)
	require.NoError(t, err)
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}
