// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// A Recorder returns an Observer for central.Peers, which records an Event when a peer becomes
// unreachable.
func ExampleNew() {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	plane, err := region.APIFor(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	recorder := events.New(events.Options{Instance: "replica-a"})
	var wg sync.WaitGroup
	wg.Go(func() { _ = recorder.Start(ctx) })
	defer wg.Wait()
	defer cancel()

	observer := recorder.Peers(plane, nil) // for central.PeersOptions
	resource := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	for {
		// central.Peers calls this when a peer becomes unreachable.
		observer.Ready(ctx, central.ReadyEvent{Peer: "eu", UID: "1234", Before: "True", Status: "False", Reason: "Unreachable", Message: "dial: timeout"})
		list, err := plane.Dynamic().Resource(resource).Namespace("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(list.Items) == 0 {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		e := list.Items[0].Object
		fmt.Println(e["type"], e["reason"], e["message"])
		return
	}
	// Output: Warning Unreachable dial: timeout
}
