// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/splitter"
)

// seatHeap is a textbook heap: the cluster that gets the next seat is on top.
type seatHeap []struct {
	index         int
	weight, seats int64
}

func (h seatHeap) Len() int { return len(h) }
func (h seatHeap) Less(i, j int) bool {
	a, b := h[i].weight*(2*h[j].seats+1), h[j].weight*(2*h[i].seats+1)
	if a != b {
		return a > b
	}
	return h[i].index < h[j].index
}
func (h seatHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *seatHeap) Push(any)     {}
func (h *seatHeap) Pop() any {
	*h = (*h)[:len(*h)-1]
	return nil
}

// oneByOne gives each share its lower bound. Then it gives the remaining replicas one by one, up to
// the upper bounds.
func oneByOne(n int64, shares []splitter.Share) []int64 {
	h := make(seatHeap, len(shares))
	for i, s := range shares {
		h[i].index, h[i].weight, h[i].seats = i, *s.Weight, s.Min
		n -= s.Min
	}
	heap.Init(&h)
	seats := make([]int64, len(shares))
	for len(h) > 0 && n > 0 {
		e := &h[0]
		if most := shares[e.index].Max; most != nil && e.seats == *most {
			seats[e.index] = e.seats
			heap.Pop(&h)
			continue
		}
		e.seats++
		n--
		heap.Fix(&h, 0)
	}
	for _, e := range h {
		seats[e.index] = e.seats
	}
	return seats
}

// The baseline is a textbook heap that gives seats one by one; the metric ratio is how many times
// faster Divide is. With bounds the heap runs twice, from the minima and from the present replicas.
// That yields the shares and the replicas to keep, but neither the moves nor the reasons.
func BenchmarkDivide(b *testing.B) {
	for _, clusters := range []int{10, 100, 1000, 10_000} {
		for _, replicas := range []int64{1000, 1_000_000} {
			random := rand.New(rand.NewPCG(1, uint64(clusters)))
			plain, bounded, present := make([]splitter.Share, clusters), make([]splitter.Share, clusters), make([]splitter.Share, clusters)
			for i := range plain {
				s := splitter.Share{Name: fmt.Sprintf("cluster-%05d", i), Weight: new(1 + random.Int64N(1000))}
				plain[i] = s
				fair := 1 + 2*replicas/int64(clusters)
				s.Min, s.Max = random.Int64N(fair)/4, new(fair/2+random.Int64N(fair))
				s.Present = s.Min + random.Int64N(1+(fair/2-s.Min)/2)
				bounded[i] = s
				s.Min, s.Present = s.Present, 0
				present[i] = s
			}
			benchDivide(b, fmt.Sprintf("clusters=%d/replicas=%d/weights", clusters, replicas), splitter.Demand{Replicas: replicas}, plain,
				func() { oneByOne(replicas, plain) })
			benchDivide(b, fmt.Sprintf("clusters=%d/replicas=%d/bounds", clusters, replicas), splitter.Demand{Replicas: replicas, Moves: replicas / 100}, bounded,
				func() { oneByOne(replicas, bounded); oneByOne(replicas, present) })
		}
	}
}

func benchDivide(b *testing.B, name string, demand splitter.Demand, shares []splitter.Share, baseline func()) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		started, runs := time.Now(), 0
		for ; runs == 0 || time.Since(started) < 50*time.Millisecond; runs++ {
			baseline()
		}
		each := time.Since(started) / time.Duration(runs)
		b.ReportAllocs()
		b.ResetTimer()
		for b.Loop() {
			_, err := splitter.Divide(demand, shares)
			require.NoError(b, err)
		}
		b.ReportMetric(float64(each)*float64(b.N)/float64(b.Elapsed()), "ratio")
	})
}

// For each cluster, the results of the baseline and of Divide differ by at most one: the two decide
// differently between equal claims.
func TestOneByOneDividesAlike(t *testing.T) {
	shares := weights(7, 11, 13, 17, 19)
	for n := range int64(300) {
		plan := mustDivide(t, splitter.Demand{Replicas: n}, shares)
		for i, seats := range oneByOne(n, shares) {
			require.InDelta(t, seats, plan.Replicas(shares[i].Name), 1)
		}
	}
}
