// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const sample = `package sample

type Maker interface{ Make() }

type Thing struct{ Part Part }

func (*Thing) Make() {}
func (Thing) String() string { return "" }
func (Thing) Lonely() {}

type Part struct{}

type Color int

const Red Color = 1

const Name = "name"

func Used(Color) {}

func unexported() {}
`

// TestEntries lists a package whose identifiers have a user, a reason by their types, a written
// reason, or neither user nor reason.
func TestEntries(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "sample.go", sample, 0)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := new(types.Config).Check(module+"/sample", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := surface{declared: map[identifier]types.Object{}}
	s.declare(&packages.Package{Fset: files, Types: checked})
	s.code = map[identifier]users{{"sample", "Used"}: {"other": true}}

	want := map[string]string{
		"sample.Color":        "part of Used",
		"sample.Maker":        "",
		"sample.Name":         "stored name",
		"sample.Part":         "part of Thing",
		"sample.Red":          "value of Color",
		"sample.Thing":        "",
		"sample.Thing.Lonely": "",
		"sample.Thing.Make":   "implements sample.Maker",
		"sample.Thing.String": "implements fmt.Stringer",
		"sample.Used":         "",
	}
	written := map[string]string{"sample.Name": "stored name", "sample.Used": "a reason that nothing needs"}
	entries := s.entries(written)
	for _, e := range entries {
		reason, ok := want[e.id.String()]
		if !ok || e.reason != reason {
			t.Errorf("%s: reason %q, want %q", e.id, e.reason, reason)
		}
		delete(want, e.id.String())
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}

	got := verdict(entries, written).Error()
	for _, name := range []string{"sample.Maker", "sample.Thing", "sample.Thing.Lonely"} {
		if !strings.Contains(got, name+" has no user") {
			t.Errorf("the verdict does not name %s: %s", name, got)
		}
	}
	if !strings.Contains(got, "sample.Used has users") {
		t.Errorf("the verdict does not name the reason that nothing needs: %s", got)
	}
	if n := strings.Count(got, "\n") + 1; n != 4 {
		t.Errorf("%d findings, want 4: %s", n, got)
	}
}
