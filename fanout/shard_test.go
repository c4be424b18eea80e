// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// ownerOf is a Shard that owns the keys with the given suffix.
type ownerOf string

func (o ownerOf) Owns(key string) bool { return strings.HasSuffix(key, string(o)) }

func (ownerOf) Watch(context.Context) iter.Seq[uint64] { return func(func(uint64) bool) {} }

// Replicas of a program divide the sweeps of Start: each replica skips the objects of the other
// replicas' shards.
func TestStartSweepsItsShard(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	acme := addAccount(t, c)
	client := clustersIn(t, r, "eu-west", acme)
	for _, name := range []string{"a", "b"} {
		_, err := c.Add(t.Context(), newServiceCluster(acme, name), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		require.NoError(t, client.Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	guarded := func(name string) bool {
		_, err := client.Get(t.Context(), name, metav1.GetOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err))
		return err == nil
	}
	start := func(shard fanout.Shard) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		replica := coordinator(t, r, log, fanout.Options{Shard: shard, SweepEvery: 10 * time.Millisecond})
		go func() { ended <- replica.Start(ctx) }()
		return func() {
			cancel()
			require.NoError(t, <-ended)
		}
	}
	stop := start(ownerOf("ServiceCluster/" + acme + "/a"))
	require.Eventually(t, func() bool { return guarded("a") }, 30*time.Second, 10*time.Millisecond)
	stop()
	require.False(t, guarded("b"), "it is another replica's")
	defer start(ownerOf("/b"))()
	require.Eventually(t, func() bool { return guarded("b") }, 30*time.Second, 10*time.Millisecond)
}
