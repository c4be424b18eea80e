// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/examples/internal/stage"
)

// evictor evicts a pod of a cluster. The error is a TooManyRequests if a budget does not allow it now.
type evictor func(ctx context.Context, c *stage.Cluster, pod *unstructured.Unstructured) error

// story is the state that the steps share.
type story struct {
	*stage.Stage
	out     io.Writer
	evict   evictor
	traffic *traffic
	sampler *sampler
}

// step is one step of the story, and of the README.
type step struct {
	title string // also in the chart
	does  string // what happens
	do    func(context.Context) error
}

func (s *story) steps() []step {
	return []step{
		{"applied in three clusters", "30 requests a second: the six replicas of minReplicas", s.apply},
		{"load rises", "180 requests a second: 18 replicas", s.rise},
		{"rollout", "a new image: the clusters share maxUnavailable and maxSurge", s.roll},
		{"nodes are drained in two clusters", "the clusters share the disruption budget", s.drainNodes},
		{"cluster-2 is lost", "the other autoscalers replace its replicas", s.lose},
		{"cluster-2 returns", "its leftovers are removed, then it takes its part again", s.returns},
		{"cluster-1 is drained", "its replicas run elsewhere before it removes them", s.drain},
		{"load falls", "30 requests a second: six replicas", s.fall},
	}
}

// tell runs the story. The sampler of s then has the content of the chart.
func tell(ctx context.Context, s *story, grace time.Duration) error {
	if err := install(ctx, s.Upstream); err != nil {
		return err
	}
	starts, err := newControl(s.Stage, grace)
	if err != nil {
		return err
	}
	// The loops must outlive the story: without them nothing could be removed after an interruption.
	group, running := errgroup.WithContext(context.WithoutCancel(ctx))
	running, end := context.WithCancel(running)
	group.Go(func() error { return runAll(running, append(starts, s.traffic.run, s.sampler.run)) })
	group.Go(func() error {
		defer end()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(running, cancel)()
		err := s.tell(ctx)
		return errors.Join(err, s.remove(ctx))
	})
	return group.Wait()
}

func (s *story) tell(ctx context.Context) error {
	begin := time.Now()
	for i, step := range s.steps() {
		s.say("%d. %s: %s", i+1, step.title, step.does)
		s.sampler.next(step.title)
		from := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, step.title, err)
		}
		sum := s.sampler.next("")
		s.say("   %d to %d available replicas, at least %d above the budget; up to %d pods, at least %d below the limit; %d samples in %s, the longest pause %s",
			sum.fewest, sum.most, sum.above, sum.pods, sum.below, sum.samples, time.Since(from).Round(time.Second/10), sum.pause.Round(time.Millisecond))
		if sum.wrong != nil {
			return fmt.Errorf("step %d, %s: %d samples pass a limit: %s", i+1, step.title, len(sum.wrong), sum.wrong[0])
		}
	}
	s.say("The samples kept the budget and the limit of pods, in %s. A limit counts if samples pass it for more than %s.", time.Since(begin).Round(time.Second), s.sampler.lag)
	return nil
}

func (s *story) say(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }

// of returns a client for a resource upstream.
func (s *story) of(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return in(s.Upstream.Dynamic(), gvr)
}

// in returns a client for a resource: cluster-wide, or in the namespace of the story.
func in(d dynamic.Interface, gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	if gvr == syncTargets || gvr == nodes {
		return d.Resource(gvr)
	}
	return d.Resource(gvr).Namespace(namespace)
}

// merge patches an object upstream, as a user.
func (s *story) merge(ctx context.Context, gvr schema.GroupVersionResource, name, patch string) error {
	_, err := s.of(gvr).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"})
	return err
}

// remove deletes the objects of the story, and waits until nothing is left.
func (s *story) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	for _, c := range s.Clusters {
		c.Link.Cut(false)
	}
	for i := len(applied) - 1; i >= 0; i-- {
		if err := s.delete(ctx, applied[i].resource, shop); err != nil {
			return err
		}
	}
	for _, c := range s.Clusters {
		if err := stage.Await(ctx, "the end of all pods in "+c.Name, func(ctx context.Context) (bool, error) {
			list, err := in(c.Conn.Dynamic(), pods).List(ctx, metav1.ListOptions{LabelSelector: "app=" + shop})
			if err != nil {
				return false, err
			}
			return len(list.Items) == 0, nil
		}); err != nil {
			return err
		}
		if err := s.delete(ctx, syncTargets, c.Name); err != nil {
			return err
		}
	}
	s.say("Nothing is left, upstream or in any cluster.")
	return nil
}

// delete deletes an object upstream and waits for its end.
func (s *story) delete(ctx context.Context, gvr schema.GroupVersionResource, name string) error {
	if err := s.of(gvr).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", gvr.Resource, name, err)
	}
	return stage.Await(ctx, "the end of "+gvr.Resource+" "+name, func(ctx context.Context) (bool, error) {
		_, err := s.of(gvr).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}
