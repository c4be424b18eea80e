// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReason(t *testing.T) {
	long := strings.Repeat("    x_test.go:1: a long story\n", 100)
	assertion := "    x_test.go:7: \n        \tError Trace:\tx_test.go:7\n        \tError:      \tShould be true\n        \tTest:       \tTestX\n"
	require.Equal(t, []string{"Error Trace:\tx_test.go:7", "Error:      \tShould be true", "Test:       \tTestX"},
		reason("=== RUN   TestX\n"+long+assertion+"--- FAIL: TestX (0.1s)\n"))
	require.Equal(t, "Error:      \tShould be true", reason(assertion + long)[1], "what is logged after it does not bury it")
	require.Len(t, reason(assertion+long), reasonLines)
	require.Equal(t, []string{"panic: oh", "goroutine 1"}, reason("fine\npanic: oh\n\ngoroutine 1\n"))
	require.Equal(t, []string{"x_test.go:9: three is odd"}, reason("=== RUN   TestX\n    x_test.go:9: three is odd\n--- FAIL: TestX (0.1s)\n"))
	require.Empty(t, reason("=== RUN   TestX\n--- FAIL: TestX (0.1s)\n"), "a test that fails because a subtest did")
	require.LessOrEqual(t, len(reason("Error Trace: " + strings.Repeat("ä", 1000))[0]), reasonWidth+len("…"))
}

// -total prints the reasons of the failures, up to a limit, and then the sum of the counts.
func TestTotalShowsReasons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counts")
	events := `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    Error Trace: a_test.go:1\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    Error: no\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"fatal error: all goroutines are asleep\n"}
{"Action":"fail","Package":"p"}
`
	tally := newTally(&bytes.Buffer{})
	require.NoError(t, tally.read(strings.NewReader(events)))
	tally.finish()
	require.NoError(t, tally.save(path))
	var out bytes.Buffer
	code, err := total([]string{path}, &out)
	require.NoError(t, err)
	require.Equal(t, 1, code)
	require.Equal(t, "failed: p TestA\nError Trace: a_test.go:1\nError: no\nfailed: p TestB\nfatal error: all goroutines are asleep\n\n0 passed, 2 failed, 0 skipped\n", out.String())

	var many []string
	for n := range 100 {
		many = append(many, fmt.Sprint("line ", n))
	}
	require.NoError(t, appendReasons(path+"-many", many))
	out.Reset()
	require.NoError(t, showReasons(path+"-many", &out))
	require.Contains(t, out.String(), fmt.Sprintf("line %d\nand %d lines more\n", reasonsLines-1, 100-reasonsLines))
}
