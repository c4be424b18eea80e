// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

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
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/shard"
)

// Replicas come, die and go with the Role that is printed, and each right in it is used.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		role := rights.Shards(namespace)
		require.Len(t, role.Rules, 1)
		rule := role.Rules[0]
		var mu sync.Mutex
		var denied []string
		used := map[string]bool{}
		s := regiontest.NewServer(regiontest.Options{Authorize: func(r regiontest.Request) error {
			if r.Resource == "" {
				return nil // what everyone may read
			}
			mu.Lock()
			defer mu.Unlock()
			if r.Group != rule.APIGroups[0] || r.Resource != rule.Resources[0] || r.Namespace != role.Namespace || !slices.Contains(rule.Verbs, r.Verb) {
				denied = append(denied, fmt.Sprintf("%s %s.%s in %q", r.Verb, r.Resource, r.Group, r.Namespace))
				return fmt.Errorf("no role allows %s", denied[len(denied)-1])
			}
			used[r.Verb] = true
			return nil
		}})
		t.Cleanup(s.Close)
		all := several(t, s, 2)
		all[0].die()
		time.Sleep(time.Hour) // its Lease is deleted
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		start(ctx, t, s, shard.Options{Identity: "one-that-goes"})
		time.Sleep(time.Minute)
		stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		require.Empty(t, denied)
		for _, verb := range rule.Verbs {
			// A real server asks for create too when an apply makes an object.
			require.True(t, used[verb] || verb == "create", "nobody uses %s", verb)
		}
	})
}
