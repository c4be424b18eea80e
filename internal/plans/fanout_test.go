// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// sweeps has providers apply, change and delete ServiceClusters in one peer, which a Coordinator takes up.
func sweeps() perturb.Scenario {
	cluster := func(name, of string) string {
		return fmt.Sprintf("{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {namespace: loodse, name: %s}, spec: {kubeconfigSecret: {name: %s}}}", name, of)
	}
	made := members("eu", "us")
	return perturb.Scenario{
		Servers: func() (map[string]perturb.Server, error) {
			servers, err := made()
			if err != nil {
				return nil, err
			}
			for _, s := range servers {
				if err := applyTo(context.Background(), s.Config(), loodse); err != nil {
					return nil, err
				}
			}
			return servers, nil
		},
		Loops: []perturb.Loop{{Name: "coordinator", Run: func(ctx context.Context, access perturb.Access) error {
			return coordinate(ctx, access, "eu", account.Kinds(), func(*region.Ring, *fanout.Coordinator) ([]func(context.Context) error, error) { return nil, nil })
		}}},
		Quiet: seldomSweeps + time.Minute,
		Script: []perturb.Step{
			put("eu makes the cluster a", "eu", cluster("a", "one")),
			put("us makes the cluster b", "us", cluster("b", "one")),
			put("eu changes a", "eu", cluster("a", "two")),
			put("eu changes a back", "eu", cluster("a", "one")),
			deletes("us deletes b", "us", cluster("b", "one")),
			put("eu makes b", "eu", cluster("b", "one")),
			deletes("eu deletes a", "eu", cluster("a", "one")),
		},
		Beats:  notes,
		Differ: protocolDiffers("serviceclusters.kubecarrier.io"),
	}
}
