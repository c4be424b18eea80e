// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A program is built with an edit of one of its modules; the module itself does not change.
func TestEdited(t *testing.T) {
	b, _ := newBuilder(t, "package main\n\nimport \"example.com/greeting/word\"\n\nfunc main() { println(word.Word) }\n")
	write(t, filepath.Join(b.module, "go.mod"), "module example.com/hello\n\ngo 1.26\n\nrequire example.com/greeting v0.0.0\n\nreplace example.com/greeting => ./greeting\n", 0o644)
	file := filepath.Join(b.module, "greeting", "word", "word.go")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	write(t, filepath.Join(b.module, "greeting", "go.mod"), "module example.com/greeting\n\ngo 1.26\n", 0o644)
	const source = "package word\n\nconst Word = \"hello\"\n"
	write(t, file, source, 0o444)
	p := program{name: "bye", pkg: ".", version: "example.com/hello", usual: time.Second, edit: &edit{
		module: "example.com/greeting", file: "word/word.go", old: `"hello"`, new: `"bye"`,
	}}
	built, err := b.programs(t.Context(), append(fake(), p), nil)
	require.NoError(t, err)
	for name, want := range map[string]string{"hello": "hello\n", "bye": "bye\n"} {
		output, err := exec.CommandContext(t.Context(), built[name]).CombinedOutput()
		require.NoError(t, err)
		require.Equal(t, want, string(output))
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, source, string(content))

	p.name, p.edit.old = "third", "nothing"
	_, err = b.programs(t.Context(), []program{p}, nil)
	require.ErrorContains(t, err, `word/word.go of example.com/greeting has "nothing" 0 times: want it once`)
}
