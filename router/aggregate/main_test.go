// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// refusals are what informers said of events that they did not take.
var refusals struct {
	sync.Mutex
	messages []string
}

// TestMain lets the errors of informers be noted instead of slowed down: the brake of apimachinery compares the times of
// different bubbles, and would let an informer sleep until the real present.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, _ error, message string, _ ...any) {
		if strings.Contains(message, "watch event") {
			refusals.Lock()
			defer refusals.Unlock()
			refusals.messages = append(refusals.messages, message)
		}
	}}
	goleak.VerifyTestMain(m)
}

// refused returns and forgets the refusals.
func refused() []string {
	refusals.Lock()
	defer refusals.Unlock()
	messages := refusals.messages
	refusals.messages = nil
	return messages
}
