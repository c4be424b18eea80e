// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes the test binary the doomed process if the environment variable is set.
func TestMain(m *testing.M) {
	if os.Getenv(doomed) != "" {
		os.Exit(runDoomed(os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}
