// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// noticed compiles the tests of a package with the mutant, runs the tests that the table names, and
// returns the first failed test and its message.
func noticed(t *testing.T, dir string, m mutant, source string, hangs bool) string {
	t.Helper()
	temp := t.TempDir()
	tests := filepath.Join(temp, "mutant.test")
	compile := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay(t, dir, m, source), "-o", tests, "./"+dir)
	compile.Dir = root
	out, err := compile.CombinedOutput()
	require.NoError(t, err, "the mutant does not compile: correct its table: %s", out)

	run := exec.CommandContext(t.Context(), tests, arguments(t, dir, m, hangs)...)
	run.Dir = filepath.Join(root, dir)
	run.Env = append(os.Environ(), "ATOLL_DOCS=", "ATOLL_MUTANTS=", "GOTRACEBACK=none")
	out, err = run.CombinedOutput()
	require.Error(t, err, "no test notices: write one, or name the one that does")
	require.Equal(t, hangs, strings.Contains(string(out), "panic: test timed out"), "found by a timeout: %s", out)
	said := answer(string(out))
	require.NotEmpty(t, said, "%s", out)
	return strings.ReplaceAll(said, temp, "…")
}

// overlay returns the path of an overlay file that replaces the mutant's file by source.
func overlay(t *testing.T, dir string, m mutant, source string) string {
	t.Helper()
	temp := t.TempDir()
	file, err := filepath.Abs(filepath.Join(root, dir, m.file))
	require.NoError(t, err)
	mutated, name := filepath.Join(temp, filepath.Base(m.file)), filepath.Join(temp, "overlay.json")
	require.NoError(t, os.WriteFile(mutated, []byte(source), 0o600))
	data, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, data, 0o600))
	return name
}

// arguments returns the arguments of the test binary.
func arguments(t *testing.T, dir string, m mutant, hangs bool) []string {
	t.Helper()
	timeout := "2m"
	if hangs {
		timeout = "30s"
	}
	name, sub, _ := strings.Cut(m.tests, "/")
	run := cmp.Or(os.Getenv("ATOLL_MUTANTS_TESTS"), "^("+name+")$/"+sub)
	args := []string{"-test.failfast", "-test.timeout=" + timeout, "-test.run=" + run}
	if importsRapid(t, dir) {
		args = append(args, "-rapid.nofailfile")
	}
	return args
}

var rapidImport = regexp.MustCompile(`(?m)^\s+"pgregory.net/rapid"$`)

// importsRapid reports whether tests of the package use rapid, which writes files about failures.
func importsRapid(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	require.NoError(t, err)
	for _, f := range files {
		source, err := os.ReadFile(f)
		require.NoError(t, err)
		if rapidImport.Match(source) {
			return true
		}
	}
	return false
}
