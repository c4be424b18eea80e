// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter"
)

// least calls do. It returns the lowest total of available replicas of a Deployment in the clusters
// while do ran.
func (w *world) least(name string, clusters []string, do func()) (fewest int) {
	w.t.Helper()
	fewest, _ = w.sample(name+": available replicas", func(ctx context.Context) (int, error) { return w.available(ctx, name, clusters) }, do)
	return fewest
}

// available returns the number of available replicas over the clusters. Of its two reads of each
// cluster it takes the greater number, so that replicas that move between reads are counted at least
// once.
func (w *world) available(ctx context.Context, name string, clusters []string) (int, error) {
	return total(clusters, slices.Max[[]int], func(cluster string) (int, error) {
		obj, err := w.of(cluster, deployments).Get(ctx, splitter.ShardName(name, cluster), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return 0, nil
		case err != nil:
			return 0, err
		}
		return number(obj, "status", "availableReplicas"), nil
	})
}

// most calls do. It returns the highest number of pods of a Deployment in all clusters while do ran,
// without pods that are terminating.
func (w *world) most(name string, do func()) (most int) {
	w.t.Helper()
	_, most = w.sample(name+": pods", func(ctx context.Context) (int, error) { return w.present(ctx, name) }, do)
	return most
}

// present returns the number of pods of a Deployment in all clusters. Of its two reads of each cluster
// it takes the smaller number, so that replicas that move between reads are not counted twice.
func (w *world) present(ctx context.Context, name string) (int, error) {
	return total(clusterNames, slices.Min[[]int], func(cluster string) (int, error) {
		list, err := w.of(cluster, pods).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return 0, err
		}
		return len(slices.DeleteFunc(list.Items, func(pod unstructured.Unstructured) bool { return pod.GetDeletionTimestamp() != nil })), nil
	})
}

// slow is how long the reads of one sample may take. While they last longer, a replica can come and go in a cluster
// between its two reads, so that the sample misses it.
const slow = 200 * time.Millisecond

// sample calls do, and counts again and again while do runs. It returns the lowest and the highest
// count. A count that fails or is slow is left out.
func (w *world) sample(what string, count func(context.Context) (int, error), do func()) (lowest, highest int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	counts := make(chan []int, 1)
	go func() {
		var all []int
		for ctx.Err() == nil {
			begin := time.Now()
			if n, err := count(ctx); err == nil && time.Since(begin) < slow {
				all = append(all, n)
			}
			time.Sleep(20 * time.Millisecond) // leaves processor time to the clusters
		}
		counts <- all
	}()
	do()
	cancel()
	all := <-counts
	require.NotEmpty(w.t, all, "no sample")
	lowest, highest = slices.Min(all), slices.Max(all)
	w.t.Logf("%s: %d to %d in %d samples", what, lowest, highest, len(all))
	return lowest, highest
}

// total reads each cluster twice, and returns the sum of the numbers that choose chooses of each two.
func total(clusters []string, choose func([]int) int, read func(cluster string) (int, error)) (sum int, err error) {
	numbers := make(map[string][]int, len(clusters))
	for range 2 {
		for _, c := range clusters {
			n, err := read(c)
			if err != nil {
				return 0, err
			}
			numbers[c] = append(numbers[c], n)
		}
	}
	for _, both := range numbers {
		sum += choose(both)
	}
	return sum, nil
}
