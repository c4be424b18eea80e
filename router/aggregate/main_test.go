// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-dev/atoll/internal/maintest"
)

// refusals collects the errors that informers report about events they refuse.
var refusals struct {
	sync.Mutex
	messages []string
}

func TestMain(m *testing.M) {
	maintest.Main(m, func(_ context.Context, _ error, message string, _ ...any) {
		if strings.Contains(message, "watch event") {
			refusals.Lock()
			defer refusals.Unlock()
			refusals.messages = append(refusals.messages, message)
		}
	})
}

// refused returns and clears the refusals.
func refused() []string {
	refusals.Lock()
	defer refusals.Unlock()
	messages := refusals.messages
	refusals.messages = nil
	return messages
}
