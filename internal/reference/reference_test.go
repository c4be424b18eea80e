// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

const (
	root  = "../.."
	pages = "../../docs/evidence"
)

// Every exported error is on the page, and its comment states what to do.
func TestErrors(t *testing.T) {
	packages, err := library(root)
	require.NoError(t, err)
	list := failures(packages)
	require.Greater(t, len(list), 40)
	for _, fault := range faults(list) {
		t.Error(fault)
	}
	docpage.Page(t, pages, "errors.md", errorsPage(list), "make reference")
}

const sample = `package sample

import "errors"

// ErrPlain means that it failed. Try again later.
var ErrPlain = errors.New("plain")

var (
	// ErrShort means that it failed, so that a caller must try again.
	ErrShort = errors.New("short")
	ErrMute, errHidden = errors.New("mute"), errors.New("hidden")
)

// Value means that a value is wrong (e.g. 1.5). If it is yours, correct it.
type Value struct{}

func (Value) Error() string { return "" }

// Pointer means that it failed. It is an error of the server.
type Pointer struct{}

func (*Pointer) Error() string { return "" }

type Writer struct{}

func (Writer) Error(string) {}
`

func TestFailures(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "sample.go", sample, parser.ParseComments)
	require.NoError(t, err)
	list := failures([]source{{"sample", []*ast.File{file}}})
	var forms []string
	for _, f := range list {
		forms = append(forms, f.form)
	}
	require.Equal(t, []string{"ErrMute", "ErrPlain", "ErrShort", "*Pointer", "Value"}, forms)

	var without []string
	for _, f := range list {
		if len(faults([]failure{f})) > 0 {
			without = append(without, f.name)
		}
	}
	require.Equal(t, []string{"ErrMute", "ErrShort", "Pointer"}, without)
	require.Contains(t, errorsPage(list), "| [sample](../../sample) | `*Pointer` | Pointer means that it failed. It is an error of the server. |\n")
}
