// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"os"
	"testing"
	"time"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

func TestFour(t *testing.T) {
	begin := time.Now()
	planetest.Shared(t, 4)
	t.Log(time.Since(begin))
	begin = time.Now()
	planetest.SharedPods(t, 1)
	t.Log(time.Since(begin))
}
