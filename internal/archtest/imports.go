// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// everything stands for any package.
const everything = "*"

// mayImport maps a package, or a directory of packages, to the packages that it may import. An entry
// allows exactly the named package; only an entry whose last element is internal also allows the
// packages below it. Of the keys that are a prefix of a package's path, the longest applies. Every
// package may also import the packages below its own internal directory; a package for tests may
// also import all packages below the key that applies to it. Every package except those of types
// (v1alpha1) may also import the types of its own directory tree, and the types of the packages that
// it may import.
var mayImport = map[string][]string{
	".":        nil,
	"region":   {"internal"},
	"wal":      {"internal"},
	"router":   {"internal", "region"},
	"syncer":   {"internal", "region", "splitter/v1alpha1", "splitter/workload", "syncer/schema"},
	"splitter": {"internal", "region", "splitter/rollout", "splitter/workload", "syncer/v1alpha1"},
	"fanout":   {"internal", "account/v1alpha1", "region", "wal"},
	"account":  {"internal", "fanout", "region"},
	"config":   {"internal", "region"},
	"events":   {"internal", "account", "fanout", "region", "region/central", "region/claim", "region/servicecluster", "splitter", "splitter/placement", "syncer"},
	"internal": nil,
	"examples": {everything},

	"region/claim":              {"internal", "fanout", "region"},
	"region/central":            {"internal", "fanout/v1alpha1", "region"},
	"region/inventory":          {"internal", "region"},
	"region/servicecluster":     {"internal", "fanout/v1alpha1", "region"},
	"region/shard":              {"internal", "region"},
	"region/regiontest":         {"internal", "region", "config"},
	"region/v1alpha1":           {"fanout/v1alpha1"},
	"region/master/v1alpha1":    nil,
	"region/operator/v1alpha1":  nil,
	"wal/kubelog":               {"internal", "region", "wal"},
	"wal/waltest":               {"internal", "wal"},
	"router/aggregate":          {"internal", "region", "router"},
	"router/apiserver":          {"internal", "region", "router", "router/aggregate", "router/proxy"},
	"router/clusterview":        {"internal", "region", "router", "router/proxy", "syncer/v1alpha1"},
	"router/proxy":              {"internal", "region", "router"},
	"router/coordinated":        {"internal", "fanout", "region", "router/apiserver"},
	"splitter/declarations":     {"internal", "region", "splitter/workload"},
	"splitter/placement":        {"internal", "region", "splitter", "splitter/workload", "syncer/v1alpha1"},
	"splitter/v1alpha1":         nil,
	"splitter/workload":         nil,
	"syncer/crds":               {"internal", "region", "syncer/schema", "syncer/targets"},
	"syncer/internal":           {"internal", "region"},
	"syncer/join":               {"internal", "region"},
	"syncer/schema":             {"internal"},
	"syncer/targets":            {"internal", "region", "syncer", "syncer/internal"},
	"syncer/v1alpha1":           nil,
	"fanout/internal":           {"fanout/internal"},
	"fanout/v1alpha1":           {"wal/v1alpha1"},
	"wal/v1alpha1":              nil,
	"account/v1alpha1":          {"fanout/v1alpha1"},
	"internal/ending":           nil,
	"internal/ambiguitytest":    {"internal", "account", "fanout", "region", "wal", "wal/waltest"},
	"internal/clustertest":      {"splitter"},
	"internal/wholetest":        {"region", "splitter", "syncer"},
	"internal/rights":           {"account", "fanout", "region", "router", "splitter", "syncer", "syncer/targets"},
	"internal/logtest":          {"region"},
	"internal/loop":             {"internal"},
	"internal/recordtest":       {"region", "wal"},
	"internal/rightstest":       {"region", "region/regiontest"},
	"splitter/clusterdaemonset": {"internal", "region", "splitter", "splitter/workload", "syncer/v1alpha1"},
}

// Imports checks the imports of each package against mayImport. It also checks that only tests and
// examples import packages for tests, and that only examples import examples.
func Imports(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		room, ok := roomOf(p.Path)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s has no line in mayImport of internal/archtest: add the packages it may import", p.Path))
			continue
		}
		for _, i := range p.Imports {
			if !allowed(p, room, i) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: %s may import %s", p.Path, i, room, describe(mayImport[room])))
			}
			if (Package{Path: i}).IsTest() && !p.IsTest() && !under(p.Path, "examples") {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which only tests and examples may import", p.Path, i))
			}
		}
		for _, i := range slices.Concat(p.Imports, p.TestImports) {
			if under(i, "examples") && !under(p.Path, "examples") {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: only examples may import an example", p.Path, i))
			}
		}
	}
	return wrong
}

// roomOf returns the key of mayImport that applies to a package. It returns false if no key
// applies.
func roomOf(p string) (string, bool) {
	for room := p; ; room = path.Dir(room) {
		if _, ok := mayImport[room]; ok {
			return room, room != "." || p == "."
		}
		if room == "." {
			return "", false
		}
	}
}

func allowed(p Package, room, imported string) bool {
	list := mayImport[room]
	isTypes := path.Base(room) == "v1alpha1"
	switch {
	case slices.Contains(list, everything):
		return true
	case slices.ContainsFunc(list, func(l string) bool { return imported == l || path.Base(l) == "internal" && under(imported, l) }):
		return true
	case path.Base(imported) == "v1alpha1":
		return !isTypes && typesOf(imported, room, list)
	}
	// The package's own internal directory, and subpackages of a test package.
	return under(imported, room+"/internal") || p.IsTest() && under(imported, room)
}

// typesOf reports whether the package types is in the same directory tree as room, or as a package
// in list.
func typesOf(types, room string, list []string) bool {
	owner, _, _ := strings.Cut(types, "/")
	return under(room, owner) || slices.ContainsFunc(list, func(l string) bool { return path.Base(l) != "v1alpha1" && under(l, owner) })
}

func describe(list []string) string {
	if len(list) == 0 {
		return "nothing of this module but its own internal packages and types"
	}
	return strings.Join(list, ", ")
}

// forbidden lists packages of client-go with clients or informers of all built-in types, which every
// user of the module would have to compile.
var forbidden = []string{
	"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/listers",
	"k8s.io/client-go/dynamic/dynamicinformer", "k8s.io/client-go/metadata/metadatainformer",
	"k8s.io/client-go/tools/leaderelection", "k8s.io/client-go/tools/events",
}

// Forbidden checks that no package imports a package of the list forbidden, directly or indirectly,
// except k8s.io/client-go/kubernetes/scheme.
func Forbidden(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		for _, d := range p.Foreign {
			if under(d, forbidden...) && !under(d, "k8s.io/client-go/kubernetes/scheme") {
				wrong = append(wrong, fmt.Sprintf("%s needs %s: use packages built on client-go's dynamic client instead", p.Path, d))
				break
			}
		}
	}
	return wrong
}

// Mains checks the tests of p if they use rapid, or if they use testing/synctest and p depends on
// k8s.io/apimachinery/pkg/util/runtime, as client-go does. Such tests must import internal/maintest,
// so that their TestMain calls its Main.
func Mains(p Package, tests []*ast.File) []string {
	imports := func(path string) bool {
		return slices.ContainsFunc(tests, func(f *ast.File) bool {
			return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
		})
	}
	bubbles := imports("testing/synctest") && slices.Contains(p.Foreign, "k8s.io/apimachinery/pkg/util/runtime")
	if !bubbles && !imports("pgregory.net/rapid") || slices.Contains(p.TestImports, "internal/maintest") {
		return nil
	}
	return []string{p.Path + ": let its TestMain call internal/maintest.Main, or its tests depend on clocks and seeds that vary between runs"}
}

// requirements lists the modules that the root go.mod may name without "// indirect".
var requirements = []string{
	"github.com/go-logr/logr", "github.com/hashicorp/go-multierror", "go.etcd.io/bbolt", "golang.org/x/sync",
	"k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/kube-openapi", "k8s.io/utils",
	// The schema packages of apiextensions-apiserver use types of k8s.io/apiserver in their
	// signatures.
	"k8s.io/apiserver",
	"sigs.k8s.io/structured-merge-diff/v6", "sigs.k8s.io/yaml",
	// Only tests import these modules.
	"github.com/anishathalye/porcupine", "github.com/cockroachdb/datadriven", "github.com/google/go-cmp",
	"github.com/stretchr/testify", "go.uber.org/goleak", "pgregory.net/rapid",
}

// inStep lists the modules that must all have the same version.
var inStep = []string{"k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/apiserver", "k8s.io/client-go"}

// Requirement is a line of go.mod.
type Requirement struct {
	Path, Version string
	Indirect      bool
}

// Requirements checks the lines of go.mod: each direct dependency must be in requirements, and all
// modules of inStep must have one version.
func Requirements(lines []Requirement) []string {
	var wrong []string
	version := ""
	for _, r := range lines {
		if !r.Indirect && !slices.Contains(requirements, r.Path) {
			wrong = append(wrong, fmt.Sprintf("go.mod requires %s: a new direct dependency needs a line in internal/archtest and its reason in the commit message", r.Path))
		}
		if !slices.Contains(inStep, r.Path) {
			continue
		}
		if version == "" {
			version = r.Version
		}
		if r.Version != version {
			wrong = append(wrong, fmt.Sprintf("go.mod requires %s %s and others at %s: Kubernetes modules must have the same version", r.Path, r.Version, version))
		}
	}
	return wrong
}
