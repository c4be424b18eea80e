// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// unrestored is a server that no plan restores: if a backup brings a removed object back, a person
// has to decide (see docs/fanout-specification.md). The exploration of the protocol covers these
// cases.
type unrestored struct{ hosted }

// Save and Load hide the methods of the embedded server, so that unrestored is not a
// perturb.Restorable.
func (unrestored) Save() {}
func (unrestored) Load() {}

// sweeps is a scenario in which providers apply, change and delete ServiceClusters, each in one
// peer. A Coordinator adopts and removes the ServiceClusters, and keeps their guards in the other
// peer.
func sweeps() perturb.Scenario {
	cluster := func(name, of string) string {
		return fmt.Sprintf("{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {namespace: loodse, name: %s}, spec: {kubeconfigSecret: {name: %s}}}", name, of)
	}
	made := members(pair, "eu", "us")
	return perturb.Scenario{
		Servers: func() (map[string]perturb.Server, error) {
			servers, err := made()
			if err != nil {
				return nil, err
			}
			for name, s := range servers {
				if err := applyTo(context.Background(), s.Config(), loodse); err != nil {
					return nil, err
				}
				servers[name] = unrestored{s.(hosted)}
			}
			return servers, nil
		},
		Loops: []perturb.Loop{{Name: "coordinator", Run: func(ctx context.Context, access perturb.Access) error {
			kinds := account.Kinds()
			for i := range kinds {
				kinds[i].AdoptApplied = true
			}
			return coordinate(ctx, access, pair, "eu", kinds, func(*region.Ring, *fanout.Coordinator) ([]func(context.Context) error, error) { return nil, nil })
		}}},
		Quiet: seldomSweeps + time.Minute,
		Script: []perturb.Step{
			put("eu makes the Account", "eu", accountOf("loodse", "Provider")),
			put("eu makes the cluster a", "eu", cluster("a", "one")),
			put("us makes the cluster b", "us", cluster("b", "one")),
			put("eu changes a", "eu", cluster("a", "two")),
			put("eu changes a back", "eu", cluster("a", "one")),
			deletes("us deletes b", "us", cluster("b", "one")),
			put("eu makes b", "eu", cluster("b", "one")),
			deletes("eu deletes a", "eu", cluster("a", "one")),
		},
		Holds: all(
			inStage("eu", cluster("a", "one"), ""), inStage("us", cluster("a", "one"), ""),
			inStage("eu", cluster("b", "one"), "Configured"), inStage("us", cluster("b", "one"), "Reserved"),
		),
		Beats:  notes,
		Differ: protocolDiffers("serviceclusters.kubecarrier.io", "accounts.catalog.kubecarrier.io"),
	}
}

// inStage checks the stage of the object of a manifest; "" requires that the object does not exist.
func inStage(server, manifest, stage string) check {
	return func(ctx context.Context, access perturb.Access) error {
		obj, c, err := decode(access(server), manifest)
		if err != nil {
			return err
		}
		found, err := c.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) && stage == "" {
			return nil
		} else if err != nil {
			return err
		}
		if is, _, _ := unstructured.NestedString(found.Object, "spec", "fanout", "stage"); is != stage || stage == "" {
			return fmt.Errorf("%s %s at %s has the stage %q, not %q", obj.GetKind(), obj.GetName(), server, is, stage)
		}
		return nil
	}
}
