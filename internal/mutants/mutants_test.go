// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is a change of a package's source that breaks one of the package's rules.
type mutant struct {
	rule    string // a sentence that is true for the package
	change  string // how the mutant breaks the rule
	file    string // in the package's directory
	was, is string // was must be in the file exactly once
	tests   string // names of tests, separated by |, one of which must fail; or TEST/SUBTEST
}

// table has the mutants of one package.
type table struct {
	dir     string // from the root of the module
	mutants []mutant
	hanging []string // rules whose mutants hang until the timeout of the tests
}

var tables = []table{
	{dir: "wal", mutants: walMutants},
	{dir: "fanout", mutants: fanoutMutants},
	{dir: "account", mutants: accountMutants},
	{dir: "region", mutants: regionMutants},
	{dir: "region/claim", mutants: claimMutants},
	{dir: "region/central", mutants: centralMutants},
	{dir: "region/servicecluster", mutants: serviceclusterMutants},
	{dir: "router", mutants: routerMutants},
	{dir: "router/aggregate", mutants: aggregateMutants},
	{dir: "router/aggregate/internal/splice", mutants: spliceMutants},
	{dir: "router/apiserver", mutants: apiserverMutants},
	{dir: "router/clusterview", mutants: clusterviewMutants},
	{dir: "router/coordinated", mutants: coordinatedMutants},
	{dir: "router/proxy", mutants: proxyMutants},
	{dir: "internal/loop", mutants: loopMutants},
	{dir: "syncer", mutants: syncerMutants},
	{dir: "syncer/join", mutants: joinMutants},
	{dir: "syncer/schema", mutants: schemaMutants},
	{dir: "splitter", mutants: splitterMutants},
	{dir: "splitter/placement", mutants: placementMutants},
	{dir: "splitter/rollout", mutants: rolloutMutants},
}

const root = "../.."

// TestMutants checks that each mutant applies. With ATOLL_MUTANTS it compiles and runs them.
func TestMutants(t *testing.T) {
	wanted, err := regexp.Compile(os.Getenv("ATOLL_MUTANTS"))
	require.NoError(t, err)
	for _, tab := range tables {
		t.Run(tab.dir, func(t *testing.T) {
			declared := testsOf(t, tab.dir)
			tab.write(t, nil)
			rules := map[string]bool{}
			for _, m := range tab.mutants {
				require.False(t, rules[m.rule], "two mutants break one rule: %s", m.rule)
				rules[m.rule] = true
				t.Run(m.rule, func(t *testing.T) {
					source := applied(t, tab.dir, m)
					for name := range strings.SplitSeq(m.tests, "|") {
						name, _, _ = strings.Cut(name, "/")
						require.True(t, declared[name], "%s has no test %s", tab.dir, name)
					}
					if wanted.String() != "" && wanted.MatchString(tab.dir+": "+m.rule) {
						tab.write(t, map[string]string{m.row(): noticed(t, tab.dir, m, source, slices.Contains(tab.hanging, m.rule))})
					}
				})
			}
		})
	}
}

// applied returns the source of the mutant.
func applied(t *testing.T, dir string, m mutant) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, dir, m.file))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), m.was), "%s/%s has changed: %s", dir, m.file, m.was)
	mutated := strings.Replace(string(source), m.was, m.is, 1)
	_, err = parser.ParseFile(token.NewFileSet(), m.file, mutated, parser.SkipObjectResolution)
	require.NoError(t, err)
	return mutated
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testsOf returns the names of the tests of a package.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range files {
		source, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, match := range testFunc.FindAllStringSubmatch(string(source), -1) {
			names[match[1]] = true
		}
	}
	require.NotEmpty(t, names, "%s has no tests", dir)
	return names
}
