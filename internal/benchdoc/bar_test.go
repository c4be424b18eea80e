// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

func TestBar(t *testing.T) {
	for ratio, want := range map[string]string{
		"1": "·····│", "1.1": "·····│", "1.4": "·····│▌", "2": "·····│█", "8": "·····│███", "0.7": "····▐│", "0.5": "····█│",
		"0.03125": "█████│", "0.001": "██████████│", "0": "", "x": "",
	} {
		require.Equal(t, want, bar(ratio), ratio)
	}
}

// The page that was measured has the bars of its ratios.
func TestBarsOfThePage(t *testing.T) {
	const dir, name = "../../docs/evidence", "benchmarks.md"
	current, err := os.ReadFile(dir + "/" + name)
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(current), "│"), 50)
	docpage.Page(t, dir, name, redraw(string(current)), "ATOLL_DOCS=$PWD/docs/evidence go test ./internal/benchdoc")
}
