// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
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

// Every kind is on the page, and every kind with conditions has their constants there.
func TestCRDs(t *testing.T) {
	crds, err := definitions(root + "/config/crd")
	require.NoError(t, err)
	require.Greater(t, len(crds), 8)
	packages, err := library(root)
	require.NoError(t, err)
	page := crdsPage(crds, packages)
	for _, crd := range crds {
		kind := crd.Spec.Names.Kind
		require.Contains(t, page, "\n### spec of "+kind+"\n")
		status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		_, ok := status.Properties["conditions"]
		require.Equal(t, ok, strings.Contains(page, "\n### Conditions of "+kind+"\n"), kind)
		require.Equal(t, ok, strings.Contains(page, "\n### Reasons of "+kind+"\n"), kind)
	}
	docpage.Page(t, pages, "crds.md", page, "make reference")
}

const definition = `
spec:
  group: example.org
  names: {kind: Sample, plural: samples}
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            required: [size]
            properties:
              size: {type: integer, minimum: 1, default: 2, description: "Size is a number | of parts."}
              parts:
                type: array
                maxItems: 3
                items:
                  x-kubernetes-validations: [{rule: "self.a != ''", message: a part has a name}]
                  properties: {a: {type: string, enum: [x, "y"]}}
              others:
                type: object
                additionalProperties: {properties: {a: {type: string, enum: [x, "y"]}}}
`

func TestFields(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sample.yaml"), []byte(definition), 0o600))
	crds, err := definitions(dir)
	require.NoError(t, err)
	page := crdsPage(crds, nil)
	for _, row := range []string{
		"| `spec.size` | integer | `2` | required; at least 1 | Size is a number \\| of parts. |\n",
		"| `spec.others.*.a` | string |  | `x`, `y` |  |\n",
		"| `spec.parts` | list of any |  | at most 3 items |  Its fields are those of `spec.others.*` of Sample. |\n",
		"| `spec.parts[]` | a part has a name |\n",
	} {
		require.Contains(t, page, row)
	}
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
