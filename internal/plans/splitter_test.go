// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/syncer"
)

// splitting returns the loop of a Splitter that divides over the SyncTargets.
func splitting(opts splitter.Options) perturb.Loop {
	return starts("splitter", func(access perturb.Access) (interface{ Start(context.Context) error }, error) {
		up, err := api(access, upstream)
		if err != nil {
			return nil, err
		}
		return splitter.New(up, splitter.SyncTargets(up), opts)
	})
}

// target returns a SyncTarget. Weights and replicas of the scenarios avoid ties, which the random
// UID of a workload would decide.
func target(name, labels, spec string) string {
	return "{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: " + name + ", labels: {" + labels + "}}, spec: {" + spec + "}}"
}

const (
	twoThirds = "splitter.atoll.dev/weight: '2'"
	oneThird  = "splitter.atoll.dev/weight: '1'"
	evicted   = "evictAfter: '2000-01-01T00:00:00Z'"
)

// splitterLife is a scenario of a Deployment that is divided over two clusters.
func splitterLife() perturb.Scenario {
	return splitterLifeWith(splitter.Options{})
}

func splitterLifeWith(opts splitter.Options) perturb.Scenario {
	return perturb.Scenario{
		Servers: servers(),
		Loops:   []perturb.Loop{splitting(opts), shards(), readyTargets()},
		Script: []perturb.Step{
			put("a joins", upstream, target("a", twoThirds, "")),
			put("make web", upstream, web("6", "web:1", "")),
			put("b joins", upstream, target("b", oneThird, "")),
			put("change web", upstream, web("9", "web:2", "")),
			put("change web back", upstream, web("6", "web:1", "")),
			change("a user changes a shard", upstream, deployments, "web--a", `{"spec":{"replicas":1}}`),
			strike("a user deletes a shard", upstream, deployments, "web--b"),
			copied("a user copies a shard under another name", "web--b", "web-copy"),
			drop("delete web", upstream, deployments, "web"),
			put("make web again", upstream, web("3", "web:3", "")),
			drop("delete the copy", upstream, deployments, "web-copy"),
			change("a user removes the annotations of a shard", upstream, deployments, "web--a", `{"metadata":{"annotations":null}}`),
			put("web grows", upstream, web("6", "web:3", "")),
		},
		Holds: all(
			has(upstream, deployments, "web--a", int64(4), "spec", "replicas"),
			has(upstream, deployments, "web--b", int64(2), "spec", "replicas"),
			has(upstream, deployments, "web", int64(6), "status", "availableReplicas"),
		),
	}
}

// copied is a step in which a user creates a copy of an object under another name, as with kubectl
// get and create, with its labels and annotations.
func copied(name, from, to string) perturb.Step {
	return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
		obj, err := get(ctx, access, upstream, deployments, from)
		if obj == nil || err != nil {
			return err
		}
		anew := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": obj.Object["spec"]}}
		anew.SetName(to)
		anew.SetNamespace("default")
		anew.SetLabels(obj.GetLabels())
		anew.SetAnnotations(obj.GetAnnotations())
		c, err := client(access, upstream, deployments)
		if err != nil {
			return err
		}
		_, err = c.Create(ctx, anew, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}}
}

// splitterDrain is a scenario in which clusters join, drain and leave.
func splitterDrain() perturb.Scenario {
	return perturb.Scenario{
		Servers: servers(),
		Loops:   []perturb.Loop{splitting(splitter.Options{}), shards(), readyTargets()},
		Script: []perturb.Step{
			put("a joins", upstream, target("a", twoThirds, "")),
			put("b joins", upstream, target("b", oneThird, "")),
			put("make web", upstream, web("6", "web:1", "")),
			put("a drains", upstream, target("a", twoThirds, evicted)),
			put("a returns", upstream, target("a", twoThirds, "")),
			drop("b is removed", upstream, syncTargets, "b"),
			put("b joins again", upstream, target("b", oneThird, "")),
			put("b takes nothing new", upstream, target("b", oneThird, "unschedulable: true")),
			put("web grows", upstream, web("9", "web:1", "")),
			put("b takes its share", upstream, target("b", oneThird, "")),
			drop("delete web", upstream, deployments, "web"),
		},
		Always: enoughAvailable(5), // of six, a quarter may be unavailable
	}
}

// Another client deletes a shard while the splitter's cache still has it. The splitter must not
// take replicas from other shards in favor of the deleted one.
func TestADeletedShardTakesNothingElsewhere(t *testing.T) {
	at := perturb.Point{Loop: "splitter", Server: upstream, Verb: "patch", Resource: "deployments.apps", Namespace: "default", Name: "web--a", N: 5}
	of := perturb.Object{Server: upstream, Resource: "deployments.apps", Namespace: "default", Name: "web--a"}
	perturb.Replay(t, splitterDrain(), perturb.Plan{{Kind: perturb.DeleteBefore, At: at, Of: of}})
}

// splitterMoves is a scenario that drains one cluster after another. The syncers of these clusters
// delete the shards that the splitter removes.
func splitterMoves() perturb.Scenario {
	opts := syncer.Options{Types: onlyTypes(deployments), Discovery: seldom}
	steady := strings.Replace(web("4", "web:1", ""), "  template:", "  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}\n  template:", 1)
	return perturb.Scenario{
		Servers: servers("a", "b", "c"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{
			splitting(splitter.Options{}), readyTargets(),
			syncing("a", opts), syncing("b", opts), syncing("c", opts), workloads("a"), workloads("b"), workloads("c"),
		},
		Script: []perturb.Step{
			put("a joins", upstream, target("a", "", "")),
			put("make web", upstream, steady),
			put("b joins", upstream, target("b", "", "unschedulable: true")),
			put("c joins", upstream, target("c", "", "unschedulable: true")),
			put("b takes its share", upstream, target("b", "", "")),
			put("a drains", upstream, target("a", "", evicted)),
			put("c takes its share", upstream, target("c", "", "")),
			put("b drains", upstream, target("b", "", evicted)),
			put("a returns", upstream, target("a", "", "")),
			put("c drains", upstream, target("c", "", evicted)),
		},
		Holds:  has("a", deployments, "web--a", int64(4), "spec", "replicas"),
		Always: enoughAvailable(4),
	}
}
