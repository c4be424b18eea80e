// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTally(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		want   counts
		shown  string
	}{
		"passes and skips": {
			[]string{
				`{"Action":"run","Package":"p","Test":"TestA"}`, `{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`, `{"Action":"run","Package":"p","Test":"TestB"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"not here\n"}`, `{"Action":"skip","Package":"p","Test":"TestB"}`,
				`{"Action":"output","Package":"p","Output":"PASS\n"}`, `{"Action":"output","Package":"p","Output":"ok  \tp\t1s\n"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			counts{1, 0, 1}, "not here\nok  \tp\t1s\n",
		},
		"a failed subtest": {
			[]string{
				`{"Action":"run","Package":"p","Test":"TestA"}`, `{"Action":"run","Package":"p","Test":"TestA/x"}`,
				`{"Action":"output","Package":"p","Test":"TestA/x","Output":"wrong\n"}`, `{"Action":"fail","Package":"p","Test":"TestA/x"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`, `{"Action":"fail","Package":"p"}`,
			},
			counts{0, 2, 0}, "wrong\n",
		},
		"a package that does not build": {
			[]string{`{"ImportPath":"p","Action":"build-output","Output":"undefined: x\n"}`, `{"Action":"fail","Package":"p","FailedBuild":"p"}`},
			counts{0, 1, 0}, "undefined: x\n",
		},
		"a package that dies": {
			[]string{
				`{"Action":"run","Package":"p","Test":"TestA"}`, `{"Action":"output","Package":"p","Test":"TestA","Output":"panic\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			counts{0, 1, 0}, "panic\n",
		},
		"a run that was killed": {[]string{`{"Action":"run","Package":"p","Test":"TestA"}`}, counts{0, 1, 0}, ""},
		"no tests":              {[]string{`{"Action":"skip","Package":"p"}`}, counts{}, ""},
		"not an event":          {[]string{"go: no such tool"}, counts{}, "go: no such tool"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tally := newTally(&out)
			require.NoError(t, tally.read(strings.NewReader(strings.Join(c.events, "\n"))))
			tally.finish()
			require.Equal(t, c.want, tally.counts)
			require.Equal(t, c.shown, out.String())
		})
	}
}

func TestTotal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counts")
	require.NoError(t, appendCounts(path, counts{3, 0, 1}))
	require.NoError(t, appendCounts(path, counts{4, 0, 0}))
	var out bytes.Buffer
	code, err := total([]string{path}, &out)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, "7 passed, 0 failed, 1 skipped\n", out.String())

	require.NoError(t, appendCounts(path, counts{0, 2, 0}))
	code, err = total([]string{path}, &out)
	require.NoError(t, err)
	require.Equal(t, 1, code)

	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, appendCounts(empty, counts{}))
	code, err = total([]string{empty}, &out)
	require.NoError(t, err)
	require.Equal(t, 1, code, "a run without a single test is not a success")
	_, err = total([]string{path + "-missing"}, &out)
	require.Error(t, err)
}

func TestFuzzTargets(t *testing.T) {
	require.Equal(t, []fuzzTarget{{"p", "FuzzA"}, {"p", "FuzzB"}, {"r", "FuzzC"}},
		fuzzTargets("FuzzA\nFuzzB\nok  \tp\t0.1s\n?   \tq\t[no test files]\nFuzzC\nok  \tr\t(cached)\n"))
}
