// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package declarations_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/declarations"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

func ExampleNew() {
	up, err := region.APIFor(&rest.Config{Host: "https://upstream.example.org"})
	if err != nil {
		fmt.Println(err)
		return
	}
	follow, err := declarations.New(up, func(ctx context.Context, types []v1alpha1.WorkloadTypeSpec) error {
		kinds := []splitter.Kind{splitter.Deployments()}
		for _, spec := range types {
			kind, err := splitter.Declared(spec)
			if err != nil {
				return err
			}
			kinds = append(kinds, kind)
		}
		s, err := splitter.New(up, splitter.SyncTargets(up), splitter.Options{Kinds: kinds})
		if err != nil {
			return err
		}
		return s.Start(ctx)
	}, declarations.Options{})
	fmt.Println(follow != nil, err) // follow.Start(ctx) runs the Splitter
	// Output: true <nil>
}
