// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package logtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
)

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := logtest.New()
		go func() {
			time.Sleep(time.Second)
			l.Logger().WithName("ring").Info("later", "peer", "eu-west")
		}()
		l.Logger().Info("before")
		l.Logger().V(1).Info("details")
		l.Await(t, "before")
		l.Await(t, "ring", "later", `"eu-west"`)
		require.Len(t, l.List(), 2)
	})
}
