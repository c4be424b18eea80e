// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestImportsRule(t *testing.T) {
	for name, c := range map[string]struct {
		p    Package
		want string // part of the first violation; empty: no violation
	}{
		"a leaf":                        {Package{Path: "wal", Imports: []string{"region"}}, "wal imports region"},
		"a room may use what it may":    {Package{Path: "router", Imports: []string{"region", "region/v1alpha1", "internal/hash"}}, ""},
		"rooms do not know one another": {Package{Path: "router", Imports: []string{"syncer"}}, "router imports syncer"},
		"region is not region/claim":    {Package{Path: "router", Imports: []string{"region/claim"}}, "router imports region/claim"},
		"its own private parts":         {Package{Path: "fanout", Imports: []string{"fanout/internal/protocol", "wal"}}, ""},
		"another's private parts":       {Package{Path: "account", Imports: []string{"fanout/internal/protocol"}}, "account imports fanout/internal"},
		"the machine is pure":           {Package{Path: "fanout/internal/protocol", Imports: []string{"region"}}, "protocol imports region"},
		"types know nothing":            {Package{Path: "syncer/v1alpha1", Imports: []string{"fanout/v1alpha1"}}, "syncer/v1alpha1 imports"},
		"types of a room below":         {Package{Path: "fanout", Imports: []string{"wal/v1alpha1"}}, ""},
		"types of a room above":         {Package{Path: "wal/kubelog", Imports: []string{"fanout/v1alpha1"}}, "wal/kubelog imports fanout/v1alpha1"},
		"types by name are not a room":  {Package{Path: "syncer", Imports: []string{"splitter"}}, "syncer imports splitter"},
		"a syncer does not run syncers": {Package{Path: "syncer", Imports: []string{"syncer/targets"}}, "syncer imports syncer/targets"},
		"claims are fanout's types":     {Package{Path: "region/v1alpha1", Imports: []string{"fanout/v1alpha1"}}, ""},
		"test packages in a library":    {Package{Path: "examples", Imports: []string{"region/regiontest"}}, ""},
		"test packages in tests":        {Package{Path: "router", TestImports: []string{"region/regiontest", "wal"}}, ""},
		"test packages elsewhere":       {Package{Path: "wal/kubelog", Imports: []string{"wal/waltest"}}, "wal/kubelog imports wal/waltest"},
		"nobody imports an example":     {Package{Path: "router", TestImports: []string{"examples/quickstart"}}, "only examples may import an example"},
		"a new room":                    {Package{Path: "attic"}, "has no line"},
		"below a room":                  {Package{Path: "internal/hash"}, ""},
		"the parts of a test package":   {Package{Path: "region/regiontest/conformance", Imports: []string{"region/regiontest", "region"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Imports([]Package{c.p})
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.NotEmpty(t, got)
			require.Contains(t, got[0], c.want)
		})
	}
}

func TestForbiddenRule(t *testing.T) {
	require.Empty(t, Forbidden([]Package{{Path: "region", Foreign: []string{"k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/dynamic"}}}))
	require.Len(t, Forbidden([]Package{{Path: "region", Foreign: []string{"k8s.io/client-go/kubernetes/typed/core/v1"}}}), 1)
	require.Len(t, Forbidden([]Package{{Path: "region", Foreign: []string{"k8s.io/client-go/informers"}}}), 1)
}

func TestMainsRule(t *testing.T) {
	parse := func(imported string) []*ast.File {
		f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n\nimport \""+imported+"\"\n", parser.ImportsOnly)
		require.NoError(t, err)
		return []*ast.File{f}
	}
	client := []string{"k8s.io/apimachinery/pkg/util/runtime"}
	require.Len(t, Mains(Package{Path: "region", Foreign: client}, parse("testing/synctest")), 1)
	require.Empty(t, Mains(Package{Path: "region", Foreign: client, TestImports: []string{"internal/maintest"}}, parse("testing/synctest")))
	require.Empty(t, Mains(Package{Path: "region", Foreign: client}, parse("testing")))
	require.Empty(t, Mains(Package{Path: "wal"}, parse("testing/synctest")))
	require.Len(t, Mains(Package{Path: "wal"}, parse("pgregory.net/rapid")), 1)
	require.Empty(t, Mains(Package{Path: "wal", TestImports: []string{"internal/maintest"}}, parse("pgregory.net/rapid")))
}

func TestRequirementsRule(t *testing.T) {
	require.Empty(t, Requirements([]Requirement{{"k8s.io/api", "v1", false}, {"k8s.io/client-go", "v1", false}, {"example.com/x", "v1", true}}))
	require.Len(t, Requirements([]Requirement{{"example.com/x", "v1", false}}), 1)
	require.Len(t, Requirements([]Requirement{{"k8s.io/api", "v1", false}, {"k8s.io/client-go", "v2", false}}), 1)
}

func TestSourceRule(t *testing.T) {
	for name, c := range map[string]struct {
		path, content string
		want          string
	}{
		"good":              {"region/key.go", header + "package region\n", ""},
		"no header":         {"region/key.go", "package region\n", "license"},
		"too long":          {"region/key.go", header + "package region\n" + strings.Repeat("\n", 600), "604 lines"},
		"vague file":        {"region/key_util.go", header + "package region\n", `"util"`},
		"vague directory":   {"internal/common/key.go", header + "package region\n", `"common"`},
		"unfinished":        {"region/key.go", header + "package region\n\n// TO" + "DO: more\n", "line 6"},
		"init":              {"region/key.go", header + "package region\n\nfunc init() {}\n", "init"},
		"init in a test":    {"region/key_test.go", header + "package region\n\nfunc init() {}\n", ""},
		"flag":              {"region/key.go", header + "package region\n\nimport _ \"flag\"\n", "flag"},
		"flag in a program": {"examples/x/main.go", header + "package main\n\nimport _ \"flag\"\n", ""},
		"generated":         {"region/zz_generated.deepcopy.go", "package region\n", ""},
		"silent":            {"region/key.go", header + "package region\n\nvar _ = logr.FromContextOrDiscard(nil)\n", "silent"},
		"silent program":    {"examples/x/key.go", header + "package x\n\nvar _ = logr.FromContextOrDiscard(nil)\n", ""},
		"not Go":            {"region/key.go", header + "func", "expected"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Source(File{Path: c.path, Content: c.content})
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0], c.want)
		})
	}
}

func parse(t *testing.T, source string) []*ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "a_test.go", source, parser.ParseComments)
	require.NoError(t, err)
	return []*ast.File{f}
}

func TestSequentialRule(t *testing.T) {
	p := Package{Path: "config"}
	require.Empty(t, Sequential(p, parse(t, "package x\n\nimport \"strings\"\n\nvar _ = strings.Cut\n")))
	require.Len(t, Sequential(p, parse(t, "package x\n\nimport \"sync\"\n\nvar _ sync.Mutex\n")), 1)
	require.Len(t, Sequential(p, parse(t, "package x\n\nimport \"golang.org/x/sync/errgroup\"\n\nvar _ errgroup.Group\n")), 1)
	require.Len(t, Sequential(p, parse(t, "package x\n\nfunc f() { go f() }\n")), 1)
}

func TestDocumentedRule(t *testing.T) {
	p := Package{Path: "region", Name: "region"}
	with, without := parse(t, "// Package region is documented.\npackage region"), parse(t, "package region")
	require.Empty(t, Documented(p, with, []string{"doc.go"}))
	require.Len(t, Documented(p, with, []string{"key.go"}), 1)
	require.Len(t, Documented(p, without, []string{"doc.go"}), 1)
	require.Empty(t, Documented(Package{Path: "x", Name: "main"}, with, []string{"main.go"}))
	require.Len(t, Documented(Package{Path: "x", Name: "main"}, without, []string{"main.go"}), 1)
	require.Empty(t, Documented(p, nil, nil))
}

func TestLoggersRule(t *testing.T) {
	p := Package{Path: "region", Name: "region"}
	silent := parse(t, "package region\nfunc (r *Ring) Start(ctx context.Context) error { return nil }")
	require.Equal(t, []string{"region: Start does not call logging.Into with the Logger of its Options"}, Loggers(p, silent))
	require.Empty(t, Loggers(Package{Path: "internal/loop", Name: "loop"}, silent))
	require.Empty(t, Loggers(p, parse(t, "package region\nfunc (r *Ring) Start(ctx context.Context) error { ctx = logging.Into(ctx, r.opts.Logger, \"ring\"); return nil }")))
}

func TestExamplesRule(t *testing.T) {
	p := Package{Path: "region", Name: "region"}
	code := parse(t, "package region\ntype Ring struct{}\nfunc NewRing() (*Ring, error) { return nil, nil }\nfunc NewThing() int { return 0 }\nfunc newRing() *Ring { return nil }")
	checked := parse(t, "package region_test\nfunc ExampleNewRing() {\n\t// Output: x\n}")
	suffixed := parse(t, "package region_test\nfunc ExampleNewRing_files() {\n\t// Output: x\n}")
	unchecked := parse(t, "package region_test\nfunc ExampleNewRing() {}")
	require.Empty(t, Examples(p, code, checked))
	require.Empty(t, Examples(p, code, suffixed))
	require.Equal(t, []string{"region.NewRing has no ExampleNewRing with an Output comment"}, Examples(p, code, unchecked))
	require.Len(t, Examples(p, code, nil), 1)
	require.Empty(t, Examples(Package{Path: "internal/x", Name: "x"}, code, nil))
}

func TestSizesRule(t *testing.T) {
	file := func(methods int) []*ast.File {
		source := "package p\ntype inner struct{}\ntype T[K any] struct{ *inner; x int }\nfunc first(t *T[int]) {}\nfunc second(n int, t *T[int]) {}\nfunc (inner) one() {}\n"
		for i := range methods {
			source += fmt.Sprintf("func (t *T[K]) m%d() {}\n", i)
		}
		return parse(t, source)
	}
	require.Equal(t, 5, Methods(file(3))["T"], "its own, a promoted one and a function")
	require.Empty(t, Sizes(Package{Path: "a", Name: "a"}, file(MaxMethods-2)))
	require.Len(t, Sizes(Package{Path: "a", Name: "a"}, file(MaxMethods-1)), 1)
	require.Empty(t, Sizes(Package{Path: "a", Name: "main"}, file(MaxMethods)))
}

func TestComplexityRule(t *testing.T) {
	complexity := func(body string) int {
		file := parse(t, "package p\nfunc f(a, b bool, c chan int, l []int) {\n"+body+"\n}\n")[0]
		return Complexity(file.Decls[0].(*ast.FuncDecl))
	}
	require.Equal(t, 1, complexity(""))
	require.Equal(t, 4, complexity("if a && b || a {}"))
	require.Equal(t, 3, complexity("for range l {}\nfor a {}"))
	require.Equal(t, 3, complexity("switch {\ncase a, b:\ncase b:\ndefault:\n}"))
	require.Equal(t, 2, complexity("select {\ncase <-c:\ndefault:\n}"))
	require.Equal(t, 2, complexity("_ = func() { if a {} }"))

	functions := map[string]int{"deep": simple + 1}
	for i := range 99 {
		functions[fmt.Sprint(i)] = simple
	}
	require.Len(t, Complexities(functions), 2)
	functions["one more"] = 1
	require.Empty(t, Complexities(functions))
}

func TestWordsRule(t *testing.T) {
	comments := func(source string) []string {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, "a.go", source, parser.ParseComments)
		require.NoError(t, err)
		return Comments("a.go", f, set)
	}
	require.Empty(t, comments("package a\n\n// f deletes the object.\nfunc f() {}\n"))
	require.Equal(t, []string{`a.go:3: "what is" in a comment: rewrite the sentence so that it names the thing`}, comments("package a\n\n// f deletes what\n// is old.\nfunc f() {}\n"))
	require.Len(t, comments("package a\n\n// The inquisition that nobody expects.\nfunc f() {}\n"), 1)
	require.Empty(t, comments("package a\n\nvar x = 1 //nolint:revive // nobody reads it\n"))
	require.Empty(t, comments("package a\n\nfunc f() {\n\t// Output: nobody\n}\n"))

	names := func(source string) []string {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, "a.go", source, 0)
		require.NoError(t, err)
		return Names("a.go", f, set)
	}
	require.Empty(t, names("package a\n\nfunc remainder() {}\n\nvar seen int\n"))
	require.Equal(t, []string{`a.go:3: "told": name the thing`}, names("package a\n\nfunc (t T) told() {}\n"))
	require.Len(t, names("package a\n\ntype (\n\tplace int\n\tothers int\n)\n"), 2)

	require.Empty(t, Prose("a.md", "The list of `x` that\n\n```\nnobody\n```\n"))
	require.Len(t, Prose("a.md", "One.\n\nTwo: whoever\ncomes.\n"), 1)
	require.Empty(t, Prose("a.md", "<!-- t: written by the tests -->\nnobody\n<!-- end of t -->\n"))
}
