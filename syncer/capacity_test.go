// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

var nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// room is a pair whose upstream has the SyncTarget, with the errors of the CapacityEvents that its Observer got.
type room struct {
	*pair
	mu   sync.Mutex
	told []string
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{pair: &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}}
	_, err := r.up.client.Resource(syncTargets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": target},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return r
}

// sync starts a syncer and waits until its heartbeat has the capacity.
func (r *room) sync(capacity time.Duration) (stop func()) {
	r.t.Helper()
	s, err := syncer.New(r.up.api, r.down.api, syncer.Options{
		Target: target, Heartbeat: 20 * time.Second, Capacity: capacity, Types: func(gr schema.GroupResource) bool { return gr == configMaps.GroupResource() },
		Observer: &syncer.Observer{Capacity: func(_ context.Context, e syncer.CapacityEvent) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, fmt.Sprint(e.Err))
		}},
	})
	require.NoError(r.t, err)
	stop = run(r.t, s)
	r.turn()
	return stop
}

// turn waits until the syncer has read the nodes and then written a heartbeat.
func (r *room) turn() {
	time.Sleep(2 * time.Minute)
	r.rest()
}

// tells returns the errors of the CapacityEvents since the last call.
func (r *room) tells() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told
	r.told = nil
	return told
}

func (r *room) node(name, allocatable string) {
	r.t.Helper()
	_, err := r.down.client.Resource(nodes).Create(r.t.Context(), parse(r.t, "{apiVersion: v1, kind: Node, metadata: {name: "+name+"}}"), metav1.CreateOptions{})
	require.NoError(r.t, err)
	r.says(name, `{"status":{"allocatable":`+allocatable+`,"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}]}}`, "status")
}

// says patches a node, as the kubelet of the node or another client would.
func (r *room) says(name, patch string, subresources ...string) {
	r.t.Helper()
	_, err := r.down.client.Resource(nodes).Patch(r.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	require.NoError(r.t, err)
}

// capacity returns the capacity in the SyncTarget's status, as "cpu memory pods", or "" if the status has no capacity.
func (r *room) capacity() string {
	r.t.Helper()
	c := r.target().Status.Capacity
	if len(c) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s %s", c.Cpu(), c.Memory(), c.Pods())
}

// cordoned returns the number of cordoned nodes in the SyncTarget's status; -1 if it is unknown.
func (r *room) cordoned() int64 {
	r.t.Helper()
	if n := r.target().Status.CordonedNodes; n != nil {
		return *n
	}
	return -1
}

const (
	large = `{"cpu":"4","memory":"8Gi","pods":"110","hugepages-2Mi":"0","example.com/gpu":"8"}`
	small = `{"cpu":"500m","memory":"1024Mi","pods":"30"}`
)

// The capacity in the heartbeat is the sum of the allocatable resources of the nodes that are ready and not cordoned.
func TestCapacity(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRoom(t)
		r.sync(0)
		require.Empty(t, r.capacity(), "without nodes the capacity is unknown")
		require.EqualValues(t, -1, r.cordoned(), "as is the number of cordoned nodes")
		r.node("a", large)
		r.node("b", small)
		r.turn()
		require.Equal(t, "4500m 9Gi 140", r.capacity())
		require.Zero(t, r.cordoned())
		r.says("b", `{"spec":{"unschedulable":true}}`)
		r.turn()
		require.Equal(t, "4 8Gi 110", r.capacity(), "one is cordoned")
		require.EqualValues(t, 1, r.cordoned())
		r.says("b", `{"spec":{"unschedulable":null}}`)
		for _, ready := range []string{"False", "Unknown"} {
			r.says("a", `{"status":{"conditions":[{"type":"Ready","status":"`+ready+`"}]}}`, "status")
			r.turn()
			require.Equal(t, "500m 1Gi 30", r.capacity(), "one is not ready")
		}
		r.says("b", `{"status":{"conditions":null}}`, "status")
		r.turn()
		require.Equal(t, "0 0 0", r.capacity(), "nodes of which none takes pods have the capacity zero")

		r.up.Reset()
		r.down.Reset()
		time.Sleep(time.Hour)
		r.rest()
		beats, reads := 0, 0
		for _, q := range r.up.Requests() {
			if q.Verb == "get" && q.Resource == syncTargets.Resource {
				beats++
			}
		}
		for _, q := range r.down.Requests() {
			if q.Resource == nodes.Resource {
				reads++
				require.Equal(t, "list", q.Verb)
			}
		}
		require.Len(t, r.up.writes(), beats, "only heartbeats are written")
		require.Empty(t, r.down.writes())
		require.LessOrEqual(t, reads, 61)
		require.GreaterOrEqual(t, reads, 45)

		require.NoError(t, r.down.client.Resource(nodes).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		require.NoError(t, r.down.client.Resource(nodes).Delete(t.Context(), "b", metav1.DeleteOptions{}))
		r.turn()
		require.Empty(t, r.capacity())
		require.EqualValues(t, -1, r.cordoned())
		require.Empty(t, r.tells())
	})
}

// Besides cpu, memory and pods the capacity has the ephemeral storage and the extended resources of the nodes, and no other
// resources. When the last node with a resource is not usable or gone, the resource stays with zero, also after a restart:
// otherwise its capacity would be unknown.
func TestCapacityOfOtherResources(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRoom(t)
		all := func() map[corev1.ResourceName]int64 {
			m := map[corev1.ResourceName]int64{}
			for name, q := range r.target().Status.Capacity {
				m[name] = q.Value()
			}
			return m
		}
		r.node("a", `{"cpu":"4","pods":"110","hugepages-2Mi":"0","attachable-volumes-x":"9","ephemeral-storage":"1Ki","example.com/gpu":"8"}`)
		r.node("b", `{"cpu":"4","pods":"110","ephemeral-storage":"1Ki","example.com/fpga":"1"}`)
		r.says("b", `{"spec":{"unschedulable":true}}`)
		stop := r.sync(0)
		require.Equal(t, map[corev1.ResourceName]int64{"cpu": 4, "pods": 110, "ephemeral-storage": 1024, "example.com/gpu": 8, "example.com/fpga": 0}, all())
		r.says("b", `{"spec":{"unschedulable":null}}`)
		r.turn()
		require.Equal(t, map[corev1.ResourceName]int64{"cpu": 8, "pods": 220, "ephemeral-storage": 2048, "example.com/gpu": 8, "example.com/fpga": 1}, all())
		stop()
		require.NoError(t, r.down.client.Resource(nodes).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		stop = r.sync(0)
		require.Equal(t, map[corev1.ResourceName]int64{"cpu": 4, "pods": 110, "ephemeral-storage": 1024, "example.com/gpu": 0, "example.com/fpga": 1}, all())
		many := `{"pods":"1"`
		for i := range 40 {
			many += fmt.Sprintf(`,"example.com/r%02d":"1"`, i)
		}
		r.node("c", many+"}")
		r.turn()
		require.Len(t, all(), 32)
		require.Contains(t, all(), corev1.ResourceName("pods"))
		require.Contains(t, all(), corev1.ResourceName("example.com/r25"))
		stop()
	})
}

// The capacity is the sum over the nodes of all pages of a list. A list that fails after some pages does not change
// it.
func TestCapacityOfManyNodes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRoom(t)
		for i := range 250 {
			r.node(fmt.Sprintf("n%03d", i), small)
		}
		r.down.Reset()
		r.sync(0)
		require.Equal(t, "125 250Gi 7500", r.capacity())
		reads := 0
		for _, q := range r.down.Requests() {
			if q.Resource == nodes.Resource {
				reads++
			}
		}
		require.Zero(t, reads%3, "three pages each time")
		r.down.Inject(regiontest.Fault{Verb: "list", Resource: nodes.GroupResource(), Skip: 2, Times: -1, Do: regiontest.Refuse(410)})
		r.turn()
		require.Equal(t, "125 250Gi 7500", r.capacity(), "an incomplete list does not count")
	})
}

// A syncer that cannot read nodes reports that once, keeps the last known capacity, and stays Ready.
func TestCapacityThatCannotBeRead(t *testing.T) {
	for name, code := range map[string]int{"forbidden": 403, "no such type": 404} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := newRoom(t)
				refuse := regiontest.Fault{Verb: "list", Resource: nodes.GroupResource(), Times: 5, Do: regiontest.Refuse(code)}
				r.down.Inject(refuse)
				stop := r.sync(0)
				require.Empty(t, r.capacity())
				require.Contains(t, r.conditions(), "Ready True Syncing")
				told := r.tells()
				require.Len(t, told, 1)
				require.Contains(t, told[0], "list nodes: ")
				r.node("a", large)
				time.Sleep(8 * time.Minute)
				require.Equal(t, "4 8Gi 110", r.capacity())
				require.Equal(t, []string{"<nil>"}, r.tells(), "it reports that it can read nodes again")
				stop()

				refuse.Times = -1
				r.down.Inject(refuse)
				r.says("a", `{"status":{"allocatable":{"pods":"1"}}}`, "status")
				before := r.target().Status.LastSyncerHeartbeatTime
				r.sync(0)
				time.Sleep(10 * time.Minute)
				require.Equal(t, "4 8Gi 110", r.capacity(), "the capacity that the process before wrote stays")
				require.Len(t, r.tells(), 1)
				require.True(t, before.Before(r.target().Status.LastSyncerHeartbeatTime))
				require.Contains(t, r.conditions(), "Ready True Syncing")
			})
		})
	}
}

// A heartbeat does not wait for a list of nodes. While the cluster is unreachable, the last known capacity stays.
func TestCapacityKeepsNoHeartbeatWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRoom(t)
		r.node("a", large)
		r.sync(0)
		require.Equal(t, "4 8Gi 110", r.capacity())
		r.down.Inject(regiontest.Fault{Verb: "list", Resource: nodes.GroupResource(), Times: -1, Do: regiontest.Delay(time.Hour)})
		for range 20 {
			time.Sleep(time.Minute)
			r.settle()
			require.Less(t, time.Since(r.target().Status.LastSyncerHeartbeatTime.Time), 30*time.Second)
		}
		require.Equal(t, "4 8Gi 110", r.capacity())
		r.down.Partition(true)
		r.turn()
		require.Contains(t, r.conditions(), "Ready False Unreachable")
		require.Equal(t, "4 8Gi 110", r.capacity())
		require.Len(t, r.tells(), 1)
	})
}

// With a negative Capacity a syncer reads no nodes, removes the capacity that it wrote, and keeps one that another client
// writes.
func TestCapacityTurnedOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newRoom(t)
		r.node("a", large)
		stop := r.sync(0)
		require.Equal(t, "4 8Gi 110", r.capacity())
		stop()
		r.down.Reset()
		r.sync(-1)
		require.Empty(t, r.capacity())
		_, err := r.up.client.Resource(syncTargets).Patch(t.Context(), target, types.MergePatchType,
			[]byte(`{"status":{"capacity":{"cpu":1,"memory":"2Gi","pods":"3"}}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		r.turn()
		require.Contains(t, r.conditions(), "Ready True Syncing")
		require.Equal(t, "1 2Gi 3", r.capacity())
		for _, q := range r.down.Requests() {
			require.NotEqual(t, nodes.Resource, q.Resource)
		}
	})
}
