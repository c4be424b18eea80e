// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const (
	b = "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {k: v}}"
	c = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: v}}"
)

// leased starts a syncer with a heartbeat that syncs the ConfigMaps a and b.
func leased(t *testing.T, opts syncer.Options) (*pair, syncer.Options) {
	t.Helper()
	opts = quiet(configMaps, opts)
	opts.Heartbeat = 20 * time.Second
	p := &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}
	_, err := p.up.client.Resource(syncTargets).Create(t.Context(), parse(t, "{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: my-cluster}}"), metav1.CreateOptions{})
	require.NoError(t, err)
	p.up.create(configMaps, a)
	p.up.create(configMaps, b)
	p.start(opts)
	require.NotNil(t, p.down.get(configMaps, "b"))
	p.reset()
	return p, opts
}

// mute makes the upstream reject the next heartbeats. times is their number.
func (p *pair) mute(times int) {
	p.up.Inject(regiontest.Fault{Verb: "patch", Resource: syncTargets.GroupResource(), Times: times, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
}

// change deletes a, changes b and creates c upstream.
func (p *pair) change() {
	p.t.Helper()
	p.up.delete(configMaps, "a")
	p.up.patch(configMaps, "b", `{"data":{"k":"changed"}}`)
	p.up.create(configMaps, c)
}

// orderly requires that a was deleted downstream before b and c were written there.
func (p *pair) orderly() {
	p.t.Helper()
	var accepted []string
	for _, r := range p.down.Requests() {
		if (r.Verb == "patch" || r.Verb == "delete" || r.Verb == "create") && r.Code < 300 && r.Code > 0 {
			accepted = append(accepted, r.Verb+" "+r.Name)
		}
	}
	require.ElementsMatch(p.t, []string{"delete a", "patch b", "patch c"}, accepted)
	require.Equal(p.t, "delete a", accepted[0])
	require.Nil(p.t, p.down.get(configMaps, "a"))
	require.Equal(p.t, "changed", field(p.down.get(configMaps, "b"), "data", "k"))
	require.NotNil(p.t, p.down.get(configMaps, "c"))
	require.Nil(p.t, p.up.get(configMaps, "a"))
}

// A syncer that has lost its lease writes no object on either side. When it has the lease again, it deletes the
// downstream objects that moved away before it writes others.
func TestACutOffSyncerStopsWriting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, _ := leased(t, syncer.Options{})
		require.Zero(t, p.Status().Stale)
		p.mute(15)
		p.up.patch(configMaps, "b", `{"data":{"k":"within"}}`)
		p.settle()
		require.Equal(t, "within", field(p.down.get(configMaps, "b"), "data", "k"), "one heartbeat that fails does not end the lease")
		time.Sleep(time.Minute)
		require.NotZero(t, p.Status().Stale)
		p.down.Reset()
		before := len(p.up.writes())
		p.change()
		time.Sleep(2 * time.Minute)
		require.Empty(t, p.down.writes())
		require.NotNil(t, p.down.get(configMaps, "a"))
		require.Equal(t, []string{"delete configmaps a", "patch configmaps b", "create configmaps "}, slices.DeleteFunc(p.up.writes()[before:], func(w string) bool {
			return w == "patch synctargets/status my-cluster"
		}), "the test's")
		p.down.Reset()
		time.Sleep(4 * time.Minute)
		require.Zero(t, p.Status().Stale)
		p.orderly()
		require.Contains(t, p.conditions(), "Ready True Syncing")
		require.Contains(t, p.conditions(), "TypesCompatible True Compatible")
	})
}

// Whatever made a syncer lose its lease, it deletes the downstream objects that moved away before it writes others,
// and meanwhile the SyncTarget has Ready False with the reason Stale.
func TestWhatMovedAwayGoesFirst(t *testing.T) {
	for name, away := range map[string]func(p *pair, opts syncer.Options){
		"heartbeats are refused": func(p *pair, _ syncer.Options) {
			p.mute(15)
			time.Sleep(2 * time.Minute)
			p.change()
			time.Sleep(4 * time.Minute)
		},
		"the downstream does not answer": func(p *pair, _ syncer.Options) {
			p.down.Partition(true)
			time.Sleep(2 * time.Minute)
			p.change()
			time.Sleep(2 * time.Minute)
			p.down.Partition(false)
			time.Sleep(30 * time.Second)
		},
		"the syncer is restarted": func(p *pair, opts syncer.Options) {
			p.stop()
			time.Sleep(2 * time.Minute)
			p.change()
			p.start(opts)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p, opts := leased(t, syncer.Options{})
				p.down.Inject(regiontest.Fault{Verb: "delete", Resource: configMaps.GroupResource(), Times: 7, Do: regiontest.Refuse(http.StatusInternalServerError)})
				away(p, opts)
				require.Nil(t, p.down.get(configMaps, "c"))
				require.NotNil(t, p.down.get(configMaps, "a"), "a is not removed yet")
				ready := p.target().Status.Conditions
				i := slices.IndexFunc(ready, func(c metav1.Condition) bool { return c.Type == string(v1alpha1.SyncTargetConditionReady) })
				require.Equal(t, "False Stale", fmt.Sprint(ready[i].Status, " ", ready[i].Reason))
				time.Sleep(3 * time.Minute)
				p.orderly()
				require.Contains(t, p.conditions(), "Ready True Syncing")
			})
		})
	}
}

// A syncer that has its lease again also waits for deletions that DeleteCap holds, and then writes other objects.
// Release ends the wait.
func TestAReturnWaitsForHeldDeletions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, _ := leased(t, syncer.Options{DeleteCap: syncer.DeleteCap{Objects: 1, Share: 0.01}})
		p.mute(15)
		time.Sleep(2 * time.Minute)
		p.up.delete(configMaps, "a")
		p.up.delete(configMaps, "b")
		p.up.create(configMaps, c)
		time.Sleep(10 * time.Minute)
		require.Nil(t, p.down.get(configMaps, "c"))
		require.Contains(t, p.conditions(), "Ready False Stale")
		require.Equal(t, 1, p.Release())
		p.rest()
		require.Zero(t, p.down.count()-1)
		require.NotNil(t, p.down.get(configMaps, "c"))
	})
}

// A syncer that has its lease again stops waiting for a deletion that has failed for ten minutes. It does not wait for
// a downstream object that stays because its origin is missing.
func TestAReturnEnds(t *testing.T) {
	for name, world := range map[string]struct {
		away func(p *pair)
		wait time.Duration
	}{
		"a deletion is refused": {
			func(p *pair) {
				p.down.Inject(regiontest.Fault{Verb: "delete", Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusInternalServerError)})
				p.up.delete(configMaps, "a")
			},
			15 * time.Minute,
		},
		"a copy has lost its origin": {
			func(p *pair) {
				p.up.patch(configMaps, "a", `{"metadata":{"finalizers":null}}`)
				p.up.delete(configMaps, "a")
			},
			2 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p, opts := leased(t, syncer.Options{})
				p.stop()
				time.Sleep(2 * time.Minute)
				world.away(p)
				p.up.create(configMaps, c)
				p.start(opts)
				time.Sleep(world.wait)
				require.NotNil(t, p.down.get(configMaps, "a"))
				require.NotNil(t, p.down.get(configMaps, "c"))
			})
		})
	}
}

// Without a SyncTarget a syncer whose downstream is unreachable loses its lease as well.
func TestTheLeaseWithoutASyncTarget(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, _ := leased(t, syncer.Options{})
		require.NoError(t, p.up.client.Resource(syncTargets).Delete(t.Context(), target, metav1.DeleteOptions{}))
		time.Sleep(2 * time.Minute)
		require.Zero(t, p.Status().Stale)
		p.down.Partition(true)
		time.Sleep(2 * time.Minute)
		require.NotZero(t, p.Status().Stale)
		p.down.Partition(false)
		time.Sleep(time.Minute)
		require.Zero(t, p.Status().Stale)
	})
}

// By default a lease lasts for three heartbeat intervals. Options.Lease can make it longer or endless.
func TestTheLengthOfTheLease(t *testing.T) {
	for length, writes := range map[time.Duration]bool{0: false, 10 * time.Minute: true, -1: true} {
		inBubble(t, func(t *testing.T) {
			p, _ := leased(t, syncer.Options{Lease: length})
			p.mute(15)
			time.Sleep(2 * time.Minute)
			p.change()
			p.rest()
			require.Equal(t, writes, p.down.get(configMaps, "c") != nil, length)
			require.Equal(t, writes, p.Status().Stale.IsZero(), length)
		})
	}
}

// After a restart within the lease, the syncer writes other objects without waiting for deletions.
func TestAShortRestartIsNoReturn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, opts := leased(t, syncer.Options{})
		p.stop()
		p.down.Inject(regiontest.Fault{Verb: "delete", Resource: configMaps.GroupResource(), Times: 7, Do: regiontest.Refuse(http.StatusInternalServerError)})
		p.change()
		p.start(opts)
		require.NotNil(t, p.down.get(configMaps, "a"))
		require.NotNil(t, p.down.get(configMaps, "c"))
	})
}
