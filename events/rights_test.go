// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// Events are written and counted on with the role that is printed, and each right in it is used.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		role := rights.Events()
		require.Len(t, role.Rules, 1)
		rule := role.Rules[0]
		var mu sync.Mutex
		used := map[string]bool{}
		server := regiontest.NewServer(regiontest.Options{Authorize: func(r regiontest.Request) error {
			mu.Lock()
			defer mu.Unlock()
			if r.Group != rule.APIGroups[0] || r.Resource != rule.Resources[0] || r.Subresource != "" || !slices.Contains(rule.Verbs, r.Verb) {
				return fmt.Errorf("no role allows %s %s.%s", r.Verb, r.Resource, r.Group)
			}
			used[r.Verb] = true
			return nil
		}})
		defer server.Close()
		api, err := region.APIFor(server.Config())
		require.NoError(t, err)
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
		mu.Lock()
		defer mu.Unlock()
		for _, verb := range rule.Verbs {
			require.True(t, used[verb], "nobody uses %s", verb)
		}
	})
}
