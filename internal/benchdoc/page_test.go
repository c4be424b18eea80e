// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const output = `goos: linux
pkg: github.com/atoll-dev/atoll/wal
BenchmarkBegin/goroutines=64-2         	    2000	     17083 ns/op	     58547 calls/s	         5.702 ratio	     512 B/op	      12 allocs/op
PASS
ok  	github.com/atoll-dev/atoll/wal	1.291s
pkg: github.com/atoll-dev/atoll/region
BenchmarkLocate-2   	1000000	      31.5 ns/op
`

func TestPage(t *testing.T) {
	results := parse(output)
	require.Len(t, results, 2)
	got := page("go test", "a machine", results)
	for _, line := range []string{
		"- Machine: a machine\n",
		"| wal | Begin/goroutines=64 | ratio | 5.7 | `·····│██▌` |\n",
		"| wal | Begin/goroutines=64 | 17.1 µs | 12 (512 B) | 58547 calls/s |\n",
		"| region | Locate | 31.5 ns | – |  |\n",
	} {
		require.Contains(t, got, line)
	}
	require.NotContains(t, got, "| region | Locate | ratio")
}

func TestMachine(t *testing.T) { require.Contains(t, machine(), "cores") }
