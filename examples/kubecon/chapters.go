// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/examples/internal/stage"
	"github.com/atoll-dev/atoll/syncer/crds"
)

func (s *story) targets() dynamic.ResourceInterface {
	return s.Upstream.Dynamic().Resource(syncTargets)
}

// attachTwo registers two clusters, and waits until the upstream serves Deployments.
func (s *story) attachTwo(ctx context.Context) error {
	for i, weight := range []string{"2", "3"} {
		if err := s.attach(ctx, s.Clusters[i], weight); err != nil {
			return err
		}
	}
	if err := s.showTargets(ctx, 2); err != nil {
		return err
	}
	return stage.Await(ctx, "the upstream to know Deployments", func(context.Context) (bool, error) {
		for _, state := range s.control.types.States() {
			if state.Type != deployments.GroupResource() || state.Side != crds.Upstream {
				continue
			}
			switch state.Reason {
			case crds.Defined:
				s.out.note("The upstream has learned %s from %v.", state.Type, state.From)
				return true, nil
			case crds.Served:
				s.out.note("The upstream serves %s by itself.", state.Type)
				return true, nil
			}
		}
		return false, nil
	})
}

func (s *story) attach(ctx context.Context, c *stage.Cluster, weight string) error {
	s.weights[c.Name] = weight
	if _, err := s.targets().Create(ctx, newSyncTarget(c.Name, weight, c.Data), metav1.CreateOptions{FieldManager: "kubectl"}); err != nil {
		return err
	}
	s.out.command("kubectl create -f "+c.Name+".yaml", "synctarget.workload.kcp.io/"+c.Name+" created")
	s.control.attach(c)
	return nil
}

// showTargets waits until n clusters are ready, and prints the SyncTargets.
func (s *story) showTargets(ctx context.Context, n int) error {
	var rows [][2]string
	err := stage.Await(ctx, "ready clusters", func(ctx context.Context) (bool, error) {
		list, err := s.targets().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		rows = nil
		ready := 0
		for i := range list.Items {
			name, status := list.Items[i].GetName(), readyCondition(&list.Items[i])
			if status == "True" {
				ready++
			}
			rows = append(rows, [2]string{name, status})
		}
		return ready == n, nil
	})
	if err != nil {
		return err
	}
	s.out.table("kubectl get synctargets", rows)
	return nil
}

// divide creates the Deployment and shows how its replicas are divided over two clusters, until all
// are ready.
func (s *story) divide(ctx context.Context) error {
	// The mirror records all states from here on.
	if _, err := s.mirror.next(ctx, "the mirror", func(state) bool { return true }); err != nil {
		return err
	}
	// The splitter has its own watch of clusters.
	if err := stage.Await(ctx, "the splitter to know both clusters", func(ctx context.Context) (bool, error) {
		plan, err := s.control.splitter.Plan(ctx, newDeployment())
		return err == nil && plan.Replicas("cluster-1") == 6 && plan.Replicas("cluster-2") == 9, nil
	}); err != nil {
		return err
	}
	if _, err := s.mirror.deployments.Create(ctx, newDeployment(), metav1.CreateOptions{FieldManager: "kubectl"}); err != nil {
		return err
	}
	s.created = true
	s.out.command("kubectl create -f deployment.yaml", "deployment.apps/"+workload+" created")
	two := func(now state) bool { return len(now.shards()) == 2 }
	both := func(now state) bool {
		return two(now) && observed(now.shard("cluster-1")) && observed(now.shard("cluster-2"))
	}
	if err := s.show(ctx, "the Deployment", func(now state) bool { return now[workload] != nil }); err != nil {
		return err
	}
	s.out.note("The splitter makes a shard for each cluster, by their weights of 2 and 3.")
	if err := s.show(ctx, "two shards", two); err != nil {
		return err
	}
	s.script.play()
	s.out.note("The syncers take them to their clusters, and bring up what becomes of them.")
	if err := s.show(ctx, "the clusters' reports", both); err != nil {
		return err
	}
	s.out.note("The splitter makes the status of the whole of them.")
	if err := s.show(ctx, "the status of the whole", func(now state) bool { return both(now) && observed(now[workload]) }); err != nil {
		return err
	}
	s.script.play()
	return s.show(ctx, "all replicas", divided(map[string]int{"cluster-1": 6, "cluster-2": 9}, 0))
}

// fail cuts the network to the second cluster.
func (s *story) fail(ctx context.Context) error {
	s.out.note("cluster-2 becomes unreachable. For %s its last known replicas still count; then they are rescheduled.", s.grace)
	lowest, err := s.become(ctx, map[string]int{"cluster-1": replicas}, 1, func() error {
		s.Clusters[1].Link.Cut(true)
		return nil
	})
	if err != nil {
		return err
	}
	s.out.note("%d replicas were left. The shard of cluster-2 is being deleted: it goes when that cluster says that its copy is gone.", lowest)
	return nil
}

func (s *story) comeBack(ctx context.Context) error {
	s.out.note("cluster-2 is reachable again. Its leftovers are deleted; %s later replicas move back, a few at a time.", rejoin)
	lowest, err := s.become(ctx, map[string]int{"cluster-1": 6, "cluster-2": 9}, 0, func() error {
		s.Clusters[1].Link.Cut(false)
		return nil
	})
	if err != nil {
		return err
	}
	return s.withinBudget(lowest)
}

func (s *story) join(ctx context.Context) error {
	lowest, err := s.become(ctx, map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7}, 0, func() error {
		return s.attach(ctx, s.Clusters[2], "4")
	})
	if err != nil {
		return err
	}
	return s.withinBudget(lowest)
}

func (s *story) drain(ctx context.Context) error {
	patch := `{"spec":{"evictAfter":"2020-01-01T00:00:00Z"}}`
	lowest, err := s.become(ctx, map[string]int{"cluster-2": 6, "cluster-3": 9}, 0, func() error {
		s.out.command("kubectl patch synctarget cluster-1 --type=merge -p '"+patch+"'", "synctarget.workload.kcp.io/cluster-1 patched")
		_, err := s.targets().Patch(ctx, "cluster-1", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"})
		return err
	})
	if err != nil {
		return err
	}
	return s.withinBudget(lowest)
}

// remove deletes the Deployment, waits until it is gone everywhere, and detaches the clusters.
func (s *story) remove(ctx context.Context) error {
	if err := s.delete(ctx, s.mirror.deployments, workload); err != nil {
		return err
	}
	s.created = false
	s.out.command("kubectl delete deployment "+workload, `deployment.apps "`+workload+`" deleted`)
	if _, err := s.mirror.next(ctx, "the end of the Deployment", func(now state) bool { return len(now) == 0 }); err != nil {
		return err
	}
	for _, c := range s.Clusters {
		switch n, err := readyIn(ctx, c); {
		case err != nil:
			return fmt.Errorf("replicas of %s: %w", c.Name, err)
		case n != 0:
			return fmt.Errorf("%s still has %d replicas", c.Name, n)
		}
		if err := s.delete(ctx, s.targets(), c.Name); err != nil {
			return err
		}
		delete(s.weights, c.Name)
		s.out.command("kubectl delete synctarget "+c.Name, `synctarget.workload.kcp.io "`+c.Name+`" deleted`)
	}
	s.out.note("Nothing is left of it, upstream or in any cluster.")
	return nil
}

// delete deletes an object and waits for its end.
func (s *story) delete(ctx context.Context, c dynamic.ResourceInterface, name string) error {
	if err := c.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return stage.Await(ctx, "the end of "+name, func(ctx context.Context) (bool, error) {
		_, err := c.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// cleanUp removes the objects of a failed story.
func (s *story) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	for _, c := range s.Clusters {
		c.Link.Cut(false)
	}
	if s.created {
		if err := s.delete(ctx, s.mirror.deployments, workload); err != nil {
			return fmt.Errorf("remove %s: %w", workload, err)
		}
	}
	for name := range s.weights {
		if err := s.delete(ctx, s.targets(), name); err != nil {
			return fmt.Errorf("remove SyncTarget %s: %w", name, err)
		}
	}
	return nil
}
