// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// At most one dropped Event a minute is logged, so that a missing right is visible without
// filling the log.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	inStage(t, Options{Logger: lines.Logger()}, func(t *testing.T, s *stage) {
		ring := regiontest.NewRing("eu-west")
		defer ring.Close()
		ring.Partition("eu-west", true)
		conn, err := ring.Conn("eu-west")
		require.NoError(t, err)
		record := func(n int) {
			for i := range n {
				s.r.Record(conn, Event{
					About: Object{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "s" + strconv.Itoa(i)},
					Type:  Warning, Reason: "Lost",
				})
			}
			passes(time.Second)
		}
		record(3)
		require.Len(t, lines.List(), 1)
		require.Contains(t, lines.List()[0], "Event is dropped")
		require.Contains(t, lines.List()[0], "connection refused")
		passes(time.Minute)
		record(3)
		require.Len(t, lines.List(), 2)
	})
}
