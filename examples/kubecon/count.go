// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/examples/internal/stage"
	"github.com/atoll-dev/atoll/splitter"
)

// counter reads the number of ready replicas from the clusters, not from the upstream.
type counter struct {
	clusters []*stage.Cluster
	out      *narrator
	begin    time.Time

	mu     sync.Mutex
	before string
	lowest int
}

// sampling is the interval of reads.
const sampling = 30 * time.Millisecond

// while calls do, and counts the ready replicas and prints each change until do returns. It returns
// the lowest number of ready replicas in that time.
func (c *counter) while(ctx context.Context, do func() error) (lowest int, err error) {
	c.mu.Lock()
	c.before, c.lowest, c.begin = "", replicas, time.Now()
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	var counting sync.WaitGroup
	counting.Go(func() {
		for ctx.Err() == nil {
			c.sample(ctx)
			select {
			case <-time.After(sampling):
			case <-ctx.Done():
			}
		}
	})
	err = do()
	c.sample(ctx)
	cancel()
	counting.Wait()
	c.out.space()
	return c.lowest, err
}

// sample reads all clusters twice, so that replicas that move between two reads are counted at
// least once.
func (c *counter) sample(ctx context.Context) {
	var first, second []int
	for _, round := range []*[]int{&first, &second} {
		for _, at := range c.clusters {
			n, err := readyIn(ctx, at)
			if err != nil {
				return // the story ends, or the next sample succeeds
			}
			*round = append(*round, n)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	total, counts := 0, make([]int, len(c.clusters))
	var where []string
	for i, at := range c.clusters {
		n := max(first[i], second[i])
		counts[i] = n
		switch {
		case n < 0:
			where = append(where, at.Name+" is cut off")
		case n > 0:
			total += n
			where = append(where, fmt.Sprintf("%s %d", at.Name, n))
		}
	}
	if line := strings.Join(where, ", "); line != c.before {
		c.before = line
		c.out.count(time.Since(c.begin), total, line)
		c.out.keep(counts)
	}
	c.lowest = min(c.lowest, total)
}

// readyIn returns the number of ready replicas in a cluster, or -1 if the cluster is cut off.
func readyIn(ctx context.Context, c *stage.Cluster) (int, error) {
	if c.Link.IsCut() {
		return -1, nil
	}
	obj, err := c.Conn.Dynamic().Resource(deployments).Namespace(namespace).Get(ctx, splitter.ShardName(workload, c.Name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, _ := ready(obj)
	return n, nil
}
