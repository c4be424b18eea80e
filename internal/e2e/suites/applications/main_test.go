// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"os"
	"testing"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }
