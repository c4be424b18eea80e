// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package maintest

import (
	"flag"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// seed is the seed of property tests; -rapid.seed=0 uses a random one.
const seed = "1"

// gcPercent makes tests collect garbage less often than by default. The default setting takes a
// quarter of the tests' time.
const gcPercent = 400

// Main is the body of a TestMain. It removes apimachinery's delay of errors, sets the seed of
// property tests unless the command line does, collects garbage less often unless GOGC is set,
// drops the lines of slog.Default unless -v is set, runs the tests, and fails if a goroutine is
// left. Errors reported to apimachinery go to hear; without hear, they are logged as by default. Main
// does not return.
func Main(m *testing.M, hear ...utilruntime.ErrorHandler) {
	if len(hear) == 0 {
		hear = utilruntime.ErrorHandlers[:1] // the handler that logs; the next one delays
	}
	utilruntime.ErrorHandlers = hear
	if f := flag.Lookup("rapid.seed"); f != nil {
		_ = f.Value.Set(seed) // cannot fail: it is a number; the command line overrides it later
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if !slices.Contains(os.Args, "-test.v=true") {
		slog.SetDefault(slog.New(slog.DiscardHandler)) // loops log there, also expected failures
	}
	goleak.VerifyTestMain(m)
}
