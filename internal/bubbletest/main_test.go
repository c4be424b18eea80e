// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package bubbletest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/atoll-dev/atoll/internal/bubbletest"
)

func TestMain(m *testing.M) { bubbletest.Main(m) }

// An error outside of bubbles holds up nobody in one.
func TestErrorsDoNotWait(t *testing.T) {
	utilruntime.HandleErrorWithContext(t.Context(), errors.New("outside"), "Told")
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		utilruntime.HandleErrorWithContext(t.Context(), errors.New("inside"), "Told")
		require.Zero(t, time.Since(before))
	})
}
