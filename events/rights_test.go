// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// The role that rights.Events returns suffices for a Recorder to create and update Events, and the
// Recorder uses each right in the role.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grants := rightstest.New(rights.Events().Rules...)
		server := regiontest.NewServer(regiontest.Options{Tokens: rightstest.Tokens(), Authorize: grants.Authorize})
		defer server.Close()
		api := rightstest.API(t, server, rightstest.Program)
		recorder := New(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = recorder.Start(ctx) })
		defer wg.Wait()
		defer cancel()
		synctest.Wait()
		for range 3 {
			recorder.Record(api, of("eu"))
			passes(2 * time.Minute)
		}
		require.Zero(t, recorder.Dropped())
		require.Empty(t, grants.Denied(server.Requests()))
		require.Empty(t, grants.Unused())
	})
}
