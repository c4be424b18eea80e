// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// An add that is aborted each time, here since a peer has lost its PeerSet, is tried again with pauses: what the attempt
// itself wrote and took back is no reason to try at once.
func TestReplicatorPausesAfterAnAbortedAdd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, Options{})
		time.Sleep(time.Minute)
		deleteIn(t, w.conn("us-east"), peerSetsResource, "", "default")
		eu := w.ring.Server("eu-west")
		eu.Reset()
		eu.Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Delay(100 * time.Millisecond)})
		w.create(newAccount("acme", []any{"Tenant"}))
		time.Sleep(10 * time.Second)
		attempts := 0
		for _, r := range eu.Requests() {
			if r.Verb == "create" && r.Resource == resource.Resource {
				attempts++
			}
		}
		require.Positive(t, attempts)
		require.LessOrEqual(t, attempts, 10)
	})
}
