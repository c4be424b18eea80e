// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
)

func TestOperationsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := newMetrics(t, Options{})
		o := m.Fanout(nil)
		inFlight := func() int { return value(m.fanout.inFlight.WithLabelValues(accounts.String())) }
		commands := func() int { return value(m.fanout.commandsInFlight.WithLabelValues("eu")) }
		step := func(id, action, verb string, done bool) {
			o.Step(t.Context(), fanout.StepEvent{Operation: id, Action: action, Verb: verb, Kind: accounts, Key: object, Peer: "eu", Done: done, Code: "OK"})
		}
		ended := fanout.EndEvent{Operation: "a", Kind: accounts, State: fanout.Committed}

		step("a", "add", "read", false)
		step("a", "add", "create", false)
		require.Equal(t, 1, inFlight())
		require.Equal(t, 2, commands())
		step("a", "add", "read", true)
		step("a", "add", "create", true)
		o.End(t.Context(), ended)
		require.Equal(t, 0, inFlight())
		require.Equal(t, 0, commands())

		// The work in the background counts until the operation is durable.
		step("a", "add", "activate", false)
		require.Equal(t, 1, inFlight())
		o.Durable(t.Context(), ended)
		require.Equal(t, 0, inFlight())
		step("a", "add", "activate", true) // late
		require.Equal(t, 0, inFlight())
		require.Equal(t, 0, commands())

		for _, action := range []string{"sweep", "cover", "resign", "discard", "succeed"} {
			step("a", action, "read", false)
			require.Equal(t, 0, inFlight(), "a %s has no end", action)
			step("a", action, "read", true)
		}

		// Two equal commands at the same time have two durations.
		step("b", "update", "read", false)
		time.Sleep(time.Second)
		step("b", "update", "read", false)
		time.Sleep(2 * time.Second)
		step("b", "update", "read", true)
		require.Equal(t, 1, commands())
		step("b", "update", "read", true)
		step("b", "update", "read", true) // had no beginning
		require.Equal(t, 0, commands())
		require.Contains(t, exposition(t, registry), "atoll_fanout_command_duration_seconds_sum{peer=\"eu\"} 5\n")

		// An operation without an end does not count for ever.
		step("c", "add", "begin", false)
		step("c", "add", "begin", true)
		time.Sleep(abandoned - time.Second)
		step("b", "update", "read", false)
		require.Equal(t, 2, inFlight())
		time.Sleep(2 * time.Minute)
		step("b", "update", "read", true)
		require.Equal(t, 1, inFlight())
		o.End(t.Context(), fanout.EndEvent{Operation: "b", Kind: accounts, State: fanout.Done})
		require.Equal(t, 0, inFlight())
	})
}
