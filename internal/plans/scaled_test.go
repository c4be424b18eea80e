// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/syncer"
)

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// scaling returns a HorizontalPodAutoscaler of the Deployment web.
func scaling(least, most string) string {
	return `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  minReplicas: ` + least + `
  maxReplicas: ` + most + `
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
`
}

// leastReplicas are the minReplicas of the autoscaler in splitterScaled.
const leastReplicas = 3

// splitterScaled is a scenario of a Deployment that is divided with its autoscaler. In each cluster an autoscaler wants
// a constant number of replicas. Clusters join and drain. How the maxReplicas are divided depends on the order in which the
// clusters needed more.
func splitterScaled() perturb.Scenario {
	opts := syncer.Options{Types: onlyTypes(deployments, autoscalers), Discovery: seldom}
	steady := strings.Replace(web("1", "web:1", ""), "  template:", "  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}\n  template:", 1)
	steady = strings.Replace(steady, "  replicas: 1\n", "", 1) // the autoscaler sets them
	return perturb.Scenario{
		Servers: servers("a", "b"),
		Differ: append([]perturb.Field{
			{Resource: autoscalersType, Path: "spec.maxReplicas"},
			{Resource: deploymentsType, Path: "metadata.annotations[splitter.atoll.dev/prior]"}, // of the last write of the spec
		}, ofTheUpstream...),
		Loops: []perturb.Loop{
			splitting(splitter.Options{Followers: []splitter.Follower{splitter.Autoscalers()}}), readyTargets(),
			syncing("a", opts), syncing("b", opts), workloads("a"), workloads("b"), scales("a", 4), scales("b", 2),
		},
		Script: []perturb.Step{
			put("a joins", upstream, target("a", twoThirds, "")),
			put("make an autoscaler", upstream, scaling("3", "9")),
			put("make web", upstream, steady),
			put("b joins", upstream, target("b", oneThird, "")),
			put("a drains", upstream, target("a", twoThirds, evicted)),
			put("a returns", upstream, target("a", twoThirds, "")),
			put("the autoscaler allows more", upstream, scaling("3", "12")),
			put("b drains", upstream, target("b", oneThird, evicted)),
			put("b returns", upstream, target("b", oneThird, "")),
			drop("delete the autoscaler", upstream, autoscalers, "web"),
			drop("delete web", upstream, deployments, "web"),
			put("make an autoscaler again", upstream, scaling("3", "9")),
			put("make web again", upstream, steady),
		},
		Holds: all(
			has("a", autoscalers, "web--a", int64(2), "spec", "minReplicas"), has("b", autoscalers, "web--b", int64(1), "spec", "minReplicas"),
			maximaAddUp(9),
			has("a", deployments, "web--a", int64(4), "spec", "replicas"), has("b", deployments, "web--b", int64(2), "spec", "replicas"),
			has(upstream, deployments, "web", int64(6), "spec", "replicas"), has(upstream, deployments, "web", int64(6), "status", "availableReplicas"),
		),
		Always: enoughAvailable(leastReplicas),
	}
}

// maximaAddUp checks that the maxReplicas of the parts add up to most.
func maximaAddUp(most int64) check {
	return func(ctx context.Context, access perturb.Access) error {
		var sum int64
		for _, name := range []string{"web--a", "web--b"} {
			part, err := get(ctx, access, upstream, autoscalers, name)
			if err != nil || part == nil {
				return err // another check finds that a part is missing
			}
			n, _, _ := unstructured.NestedInt64(part.Object, "spec", "maxReplicas")
			sum += n
		}
		if sum != most {
			return fmt.Errorf("the maxReplicas of the parts add up to %d, not %d", sum, most)
		}
		return nil
	}
}

// scales returns the loop that plays the controller of autoscalers in a cluster: each autoscaler wants n replicas.
func scales(server string, n int64) perturb.Loop {
	return perturb.Loop{Name: clusterOf + "autoscaler of " + server, Single: true, Run: func(ctx context.Context, access perturb.Access) error {
		cluster, err := api(access, server)
		if err != nil {
			return err
		}
		d := cluster.Dynamic()
		return startAll(ctx,
			func(ctx context.Context) error {
				return watching(ctx, d, autoscalers, func(ctx context.Context, _ dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
					return scale(ctx, d, obj, n)
				})
			},
			func(ctx context.Context) error {
				return watching(ctx, d, deployments, func(ctx context.Context, _ dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
					autoscaler, err := d.Resource(autoscalers).Namespace(obj.GetNamespace()).Get(ctx, obj.GetName(), metav1.GetOptions{})
					if err != nil {
						return err
					}
					return scale(ctx, d, autoscaler, n)
				})
			})
	}}
}

// scale sets the replicas of an autoscaler's Deployment to n, within the bounds of the autoscaler.
func scale(ctx context.Context, d dynamic.Interface, autoscaler *unstructured.Unstructured, n int64) error {
	least, _, _ := unstructured.NestedInt64(autoscaler.Object, "spec", "minReplicas")
	most, _, _ := unstructured.NestedInt64(autoscaler.Object, "spec", "maxReplicas")
	target, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "name")
	wanted := min(max(n, least), most)
	in := d.Resource(deployments).Namespace(autoscaler.GetNamespace())
	obj, err := in.Get(ctx, target, metav1.GetOptions{})
	if err != nil {
		return err // the event of the Deployment follows
	}
	if present, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); present != wanted && present > 0 {
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"replicas":%d}}`, obj.GetUID(), obj.GetResourceVersion(), wanted)
		if _, err := in.Patch(ctx, target, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "autoscaler"}); err != nil {
			return err
		}
	}
	limited := n > most
	reported, found, _ := unstructured.NestedInt64(autoscaler.Object, "status", "desiredReplicas")
	if c := conditionIn(autoscaler, "ScalingLimited"); found && reported == wanted && c != nil && (c["status"] == "True") == limited {
		return nil
	}
	status, reason := "False", "DesiredWithinRange"
	if limited {
		status, reason = "True", "TooManyReplicas"
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"status":{"currentReplicas":%d,"desiredReplicas":%d,"conditions":[{"type":"ScalingLimited","status":%q,"reason":%q}]}}`,
		autoscaler.GetUID(), autoscaler.GetResourceVersion(), wanted, wanted, status, reason)
	_, err = d.Resource(autoscalers).Namespace(autoscaler.GetNamespace()).Patch(ctx, autoscaler.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "autoscaler"}, "status")
	return err
}
