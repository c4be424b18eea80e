// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A lease counts from the time at which its heartbeat was sent, not from the reply: other clients count from the time
// in the heartbeat.
func TestALeaseBeginsWithItsHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLease(time.Minute)
		sent := time.Now()
		time.Sleep(40 * time.Second)
		l.renew(sent, time.Time{})
		require.NoError(t, l.err())
		time.Sleep(20 * time.Second)
		require.ErrorIs(t, l.err(), errStale)
	})
}
