// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/shard"
)

// Replicas join, die and leave with the Role that "atollctl rbac" prints. No request is denied, and
// each right of the Role is used.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		role := rights.Shards(namespace)
		grants := rightstest.New().In(role.Namespace, role.Rules...)
		s := regiontest.NewServer(regiontest.Options{History: 100000, Tokens: rightstest.Tokens(), Authorize: grants.Authorize})
		t.Cleanup(s.Close)
		all := several(t, s, 2)
		all[0].die()
		time.Sleep(time.Hour) // the Lease of the dead replica is deleted
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		start(ctx, t, s, shard.Options{Identity: "one-that-goes"})
		time.Sleep(time.Minute)
		stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, grants.Denied(s.Requests()))
		require.Empty(t, grants.Unused())
	})
}
