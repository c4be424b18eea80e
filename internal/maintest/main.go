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

// seed is the one of property tests; -rapid.seed=0 asks for one that nobody chose.
const seed = "1"

// gcPercent makes tests collect garbage less often than by default, where it is a quarter of their work.
const gcPercent = 400

// Main is the body of a TestMain: it takes apimachinery's brake away, chooses the seed of property tests unless the command
// line does, collects garbage less often unless GOGC is set, drops the lines of slog.Default unless -v is given, runs the
// tests, and fails if a goroutine is left. The errors that are reported to apimachinery go to hear; without one, they are
// logged as before. It does not return.
func Main(m *testing.M, hear ...utilruntime.ErrorHandler) {
	if len(hear) == 0 {
		hear = utilruntime.ErrorHandlers[:1] // the one that logs; the brake comes after it
	}
	utilruntime.ErrorHandlers = hear
	if f := flag.Lookup("rapid.seed"); f != nil {
		_ = f.Value.Set(seed) // a number; the command line is read later
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if !slices.Contains(os.Args, "-test.v=true") {
		slog.SetDefault(slog.New(slog.DiscardHandler)) // loops log there, also what a test makes fail
	}
	goleak.VerifyTestMain(m)
}
