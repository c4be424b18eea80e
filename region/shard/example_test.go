// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/shard"
)

// Two replicas share a thousand keys; then one of them stops.
func ExampleNew() {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	plane, err := region.APIFor(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	run := func(ctx context.Context, identity string) *shard.Members {
		members, err := shard.New(plane, "kube-system", "example", shard.Options{Identity: identity})
		if err != nil {
			fmt.Println(err)
			return nil
		}
		wg.Go(func() { _ = members.Start(ctx) })
		return members
	}
	bCtx, stopB := context.WithCancel(ctx)
	defer stopB()
	a, b := run(ctx, "a"), run(bCtx, "b")

	await := func(members *shard.Members, replicas int) {
		for range members.Watch(ctx) {
			if len(members.Live()) == replicas {
				return
			}
		}
	}
	await(a, 2)
	await(b, 2)
	both := 0
	for i := range 1000 {
		if key := fmt.Sprint(i); a.Owns(key) && b.Owns(key) {
			both++
		}
	}
	fmt.Println(a.Live(), "share; keys of both:", both)

	stopB()
	await(a, 1)
	fmt.Println(a.Live(), "has all:", a.Owns("1") && a.Owns("2") && a.Owns("3"))
	// Output:
	// [a b] share; keys of both: 0
	// [a] has all: true
}
