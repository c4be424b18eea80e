// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"flag"
	"testing"

	"github.com/atoll-dev/atoll/internal/maintest"
)

// cases is the number of cases of each property test, unless the command line sets another one. The
// cases are cheap, and a fault needs several events that follow one another.
const cases = "3000"

func TestMain(m *testing.M) {
	_ = flag.Lookup("rapid.checks").Value.Set(cases) // cannot fail: it is a number
	maintest.Main(m)
}
