// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog_test

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

// Two programs share one log; the second finds an entry that the first has not ended.
func ExampleNew() {
	crd, err := config.CRD("operations.fanout.atoll.dev")
	if err != nil {
		fmt.Println(err)
		return
	}
	central := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	defer central.Close()
	api, err := region.APIFor(central.Config()) // a program uses a kubeconfig of the central plane
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	first, err := kubelog.New(api, kubelog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := first.Begin(ctx, wal.Entry{ID: "01-a", Key: "request-7", Owner: "first", State: "begun"}); err != nil {
		fmt.Println(err)
		return
	}

	second, err := kubelog.New(api, kubelog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range second.Open(ctx) {
		fmt.Println(e.ID, e.State, "by", e.Owner, err)
		e.Owner = "second"
		if e, err = second.Advance(ctx, e); err == nil {
			fmt.Println("adopted by", e.Owner)
		}
	}
	_, err = first.Begin(ctx, wal.Entry{ID: "02-b", Key: "request-7"})
	fmt.Println(err)
	// Output:
	// 01-a begun by first <nil>
	// adopted by second
	// entry exists
}
