// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"os"
	"testing"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(managed); dir != "" {
		os.Exit(manage(dir))
	}
	os.Exit(planetest.Run(m))
}
