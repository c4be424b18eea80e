// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// outage is a list of clusters that become unready and ready, and the readiness that observes them as States does.
type outage struct {
	*readiness
	now    time.Time
	list   []Cluster
	since  map[string]time.Time // since when a cluster is unready
	losses []loss
	lasts  bool      // many clusters are unready, or were so and some are still delayed
	next   time.Time // when the readiness has asked for the next observation
}

// loss is the time at which a cluster lost its replicas, how long it was unready, and whether the outage lasted then.
type loss struct {
	at    time.Time
	after time.Duration
	lasts bool
}

func newOutage(n int, p Periods) *outage {
	o := &outage{readiness: newReadiness(p), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), since: map[string]time.Time{}}
	for i := range n {
		o.list = append(o.list, Cluster{Name: fmt.Sprint("c", i), Ready: metav1.ConditionTrue})
	}
	o.set(context.Background(), o.list, o.now)
	o.observe()
	return o
}

// turn changes the readiness of clusters.
func (o *outage) turn(is metav1.ConditionStatus, clusters ...int) {
	o.list = slices.Clone(o.list)
	for _, i := range clusters {
		c := &o.list[i]
		if is == metav1.ConditionTrue {
			delete(o.since, c.Name)
		} else if c.Ready == metav1.ConditionTrue {
			o.since[c.Name] = o.now
		}
		c.Ready = is
	}
	o.set(context.Background(), o.list, o.now)
	o.observe()
}

func (o *outage) observe() {
	if n := len(o.since); n < len(o.list) {
		o.lasts = n >= 3 && n*100 > o.periods.UnhealthyPercent*len(o.list) || o.lasts && len(o.overdue()) > 0
	}
	before := map[string]bool{}
	for name, h := range o.clusters {
		before[name] = h.out
	}
	o.next = o.now.Add(1000 * time.Hour)
	if _, _, again, _ := o.placing(o.now); again > 0 {
		o.next = o.now.Add(again)
	}
	for name, h := range o.clusters {
		if h.out && !before[name] {
			o.losses = append(o.losses, loss{o.now, o.now.Sub(o.since[name]), o.lasts})
		}
	}
}

// sleep lets time pass, with an observation each time that the readiness has asked for.
func (o *outage) sleep(d time.Duration) {
	for end := o.now.Add(d); ; o.observe() {
		if o.next.After(end) {
			o.now = end
			return
		}
		o.now = o.next
	}
}

// overdue returns the clusters that keep their replicas although they are unready for the grace period.
func (o *outage) overdue() (names []string) {
	for name, h := range o.clusters {
		if h.Ready != metav1.ConditionTrue && !h.out && !o.now.Before(h.since.Add(o.periods.Grace)) {
			names = append(names, name)
		}
	}
	return names
}

// Clusters become unready and ready at random times.
//
//   - While many are unready, and until no cluster is delayed, two losses are never closer than the EvictionInterval. So
//     a time of n intervals has at most n+1 losses.
//   - A cluster is delayed only for this reason, and only if another one lost its replicas within the interval.
//   - While no cluster is ready, none loses its replicas.
//   - With UnhealthyPercent 100 and a ready cluster, each cluster loses its replicas exactly after the grace period.
func TestLossesOfManyClustersAreRare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "clusters")
		p := Periods{
			Grace: time.Duration(rapid.IntRange(1, 400).Draw(t, "grace")) * time.Second, EvictionInterval: time.Duration(rapid.IntRange(1, 400).Draw(t, "interval")) * time.Second,
			UnhealthyPercent: rapid.SampledFrom([]int{0, 30, 80, 100}).Draw(t, "percent"),
		}
		o := newOutage(n, p)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			is := rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown, metav1.ConditionUnknown}).Draw(t, "ready")
			o.turn(is, rapid.SliceOfN(rapid.IntRange(0, n-1), 0, n).Draw(t, "turn")...)
			losses := len(o.losses)
			o.sleep(time.Duration(rapid.IntRange(0, 600).Draw(t, "sleep")) * time.Second)
			switch overdue := o.overdue(); {
			case len(o.since) == n:
				require.Len(t, o.losses, losses, "no cluster is ready")
			case !o.lasts, o.periods.UnhealthyPercent == 100:
				require.Empty(t, overdue)
			case len(overdue) > 0:
				require.Less(t, o.now.Sub(o.losses[len(o.losses)-1].at), o.periods.EvictionInterval, "%v wait for no reason", overdue)
			}
		}
		for i, l := range o.losses {
			require.GreaterOrEqual(t, l.after, p.Grace)
			if i > 0 && l.lasts {
				require.GreaterOrEqual(t, l.at.Sub(o.losses[i-1].at), o.periods.EvictionInterval)
			}
		}
	})
}

// While few clusters are unready, each loses its replicas exactly after the grace period, however many clusters have lost
// their replicas before.
func TestLossesOfFewClustersAreNotDelayed(t *testing.T) {
	o := newOutage(10, Periods{})
	o.turn(metav1.ConditionUnknown, 0, 1, 2, 3, 4)
	o.sleep(5*time.Minute - 1)
	require.Empty(t, o.losses)
	o.sleep(1)
	require.Len(t, o.losses, 5)
}

// Seven of ten clusters fail. They lose their replicas one after another, the one that failed first before the others. When
// four are back, the others still do so one after another. A cluster that fails later is not delayed.
func TestManyClustersFailAndReturn(t *testing.T) {
	o := newOutage(10, Periods{EvictionInterval: time.Hour})
	o.turn(metav1.ConditionUnknown, 5)
	o.sleep(time.Minute)
	o.turn(metav1.ConditionUnknown, 0, 1, 2, 3, 4, 6)
	o.sleep(5 * time.Minute)
	require.True(t, o.clusters["c5"].out)
	require.Len(t, o.losses, 1)
	o.sleep(time.Hour - time.Minute)
	require.True(t, o.clusters["c0"].out)
	require.Len(t, o.losses, 2)
	o.turn(metav1.ConditionTrue, 1, 2, 3, 4)
	o.sleep(time.Hour - 1)
	require.Len(t, o.losses, 2, "c6 keeps the pace")
	o.sleep(1)
	require.Len(t, o.losses, 3)
	require.Equal(t, []bool{true, true, true}, []bool{o.clusters["c0"].out, o.clusters["c5"].out, o.clusters["c6"].out})
	o.turn(metav1.ConditionUnknown, 7)
	o.sleep(5 * time.Minute)
	require.True(t, o.clusters["c7"].out)
}
