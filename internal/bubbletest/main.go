// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package bubbletest

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Main is the body of a TestMain: it takes apimachinery's brake away, runs the tests, and fails if a goroutine is left. The
// errors that are reported to apimachinery go to hear; without one, they are logged as before. It does not return.
func Main(m *testing.M, hear ...utilruntime.ErrorHandler) {
	release(hear...)
	goleak.VerifyTestMain(m)
}

// release replaces the handlers of errors by ones that do not wait.
func release(hear ...utilruntime.ErrorHandler) {
	if len(hear) == 0 {
		hear = utilruntime.ErrorHandlers[:1] // the one that logs; the brake comes after it
	}
	utilruntime.ErrorHandlers = hear
}
