// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrongArguments(t *testing.T) {
	m := newMemory(t, "a")
	dir := t.TempDir()
	good, bad, missing := filepath.Join(dir, "good"), filepath.Join(dir, "bad"), filepath.Join(dir, "missing")
	require.NoError(t, os.WriteFile(good, m.files[0].Data, 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("users: [{name: a, user: {exec: {command: /bin/rm}}}]"), 0o600))

	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":      {[]string{"-kubeconfigs", "a=" + good}, "flag provided but not defined: -kubeconfigs"},
		"argument":          {[]string{"a=" + good}, `unexpected argument "a=` + good + `": only flags are taken`},
		"no name":           {[]string{"-kubeconfig", good}, `for flag -kubeconfig: want NAME=PATH`},
		"empty name":        {[]string{"-kubeconfig", "=" + good}, `for flag -kubeconfig: want NAME=PATH`},
		"empty path":        {[]string{"-kubeconfig", "a="}, `for flag -kubeconfig: want NAME=PATH`},
		"invalid name":      {[]string{"-kubeconfig", "EU_West=" + good}, `for flag -kubeconfig: peer "EU_West"`},
		"same name twice":   {[]string{"-kubeconfig", "a=" + good, "-kubeconfig", "a=" + good}, "for flag -kubeconfig: peer a is given twice"},
		"missing file":      {[]string{"-kubeconfig", "a=" + missing}, "for flag -kubeconfig: open " + missing + ": no such file or directory"},
		"dangerous content": {[]string{"-kubeconfig", "a=" + bad}, "for flag -kubeconfig: "},
		"one peer":          {[]string{"-kubeconfig", "a=" + good}, "flag -kubeconfig: only a is given: a ring has at least two peers"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.Equal(t, 2, quickstart(t.Context(), test.args, &stdout, &stderr))
			require.Contains(t, stderr.String(), test.want)
			require.Contains(t, stderr.String(), "Usage of quickstart:")
			require.Empty(t, stdout.String())
		})
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, quickstart(t.Context(), []string{"-h"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "-kubeconfig NAME=PATH")
}

// TestTwoNamesOfOneCluster uses one kubeconfig under two names. The program refuses that.
func TestTwoNamesOfOneCluster(t *testing.T) {
	m := newMemory(t, "a")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, m.files[0].Data, 0o600))
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, quickstart(t.Context(), []string{"-kubeconfig", "a=" + path, "-kubeconfig", "b=" + path}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "two peers reach one cluster")
}
