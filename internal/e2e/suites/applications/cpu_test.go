// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cpu returns the processor time of this process and of the programs that it runs. It is zero on systems without
// /proc.
func cpu(t *testing.T) (used time.Duration) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	self := strconv.Itoa(os.Getpid())
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		_, rest, ok := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if err != nil || !ok || len(fields) < 13 || fields[1] != self && filepath.Base(filepath.Dir(path)) != self {
			continue // another program, or one that has ended
		}
		for _, field := range fields[11:13] { // user and system time, in hundredths of a second
			n, err := strconv.Atoi(field)
			require.NoError(t, err)
			used += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return used.Round(time.Second)
}
