// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
)

// counting is how often the syncers of these tests count. During one call of rest they count at least twice.
const counting = 5 * time.Second

// noNode returns the status of a pod for which the scheduler finds no node.
func noNode(message string) string {
	return fmt.Sprintf("{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: %q}]}", message)
}

// controls returns the metadata of an object that owner controls. All such objects have the same labels.
func controls(owner *unstructured.Unstructured, name string) string {
	return fmt.Sprintf("{name: %s, labels: {app: web}, ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]}",
		name, owner.GetAPIVersion(), owner.GetKind(), owner.GetName(), owner.GetUID())
}

// set creates a ReplicaSet of owner.
func (s *side) set(owner *unstructured.Unstructured, name string) *unstructured.Unstructured {
	s.t.Helper()
	return s.create(replicaSets, fmt.Sprintf("{apiVersion: apps/v1, kind: ReplicaSet, metadata: %s, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}", controls(owner, name)))
}

// pod creates a pod of owner with a status.
func (s *side) pod(owner *unstructured.Unstructured, name, status string) {
	s.t.Helper()
	s.create(pods, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: %s, spec: {containers: [{name: c, image: i}]}, status: %s}", controls(owner, name), status))
}

// status patches the status of a pod, as a scheduler or a kubelet would.
func (s *side) status(name, status string) {
	s.t.Helper()
	data, err := json.Marshal(map[string]any{"status": parse(s.t, "{apiVersion: v1, kind: Pod, status: "+status+"}").Object["status"]})
	require.NoError(s.t, err)
	s.patch(pods, name, string(data), "status")
}

// unscheduled returns the annotation in which an object has the count of its pods in a cluster.
func unscheduled(obj *unstructured.Unstructured, cluster string) string {
	return obj.GetAnnotations()["unscheduled.syncer.atoll.dev/"+cluster]
}

func (p *pair) unscheduled(gvr schema.GroupVersionResource, name string) string {
	p.t.Helper()
	return unscheduled(p.up.get(gvr, name), target)
}

const (
	few5  = "0/5 nodes are available: 5 Insufficient cpu."
	few12 = "0/12 nodes are available: 12 Insufficient cpu."
	taint = "0/5 nodes are available: 5 node(s) had untolerated taint {a: b}."
)

func TestUnscheduled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Unscheduled: counting})
		p.up.create(deployments, deployment)
		p.up.create(jobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: sum}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}")
		// This Deployment is not synced. Its pods have the same labels as those of web.
		other := p.down.create(deployments, strings.Replace(deployment, "name: web}", "name: other, labels: {app: web}}", 1))
		p.rest()
		web, sum := p.down.get(deployments, "web"), p.down.get(jobs, "sum")
		set := p.down.set(web, "web-1")
		p.down.pod(set, "web-1-a", noNode(taint))
		p.down.pod(set, "web-1-b", noNode(few5))
		p.down.pod(p.down.set(web, "web-2"), "web-2-a", noNode(few5))
		p.down.pod(set, "web-1-creating", "{phase: Pending, conditions: [{type: PodScheduled, status: 'True'}, {type: Ready, status: 'False', reason: ContainersNotReady}]}")
		p.down.pod(set, "web-1-gated", "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated}]}")
		p.down.pod(set, "web-1-new", "{phase: Pending}")
		p.down.pod(set, "web-1-runs", "{phase: Running, conditions: [{type: PodScheduled, status: 'True'}]}")
		p.down.pod(p.down.set(other, "other-1"), "other-1-a", noNode(few5))
		predecessor := set.DeepCopy()
		predecessor.SetUID("6b7e9d3c-0000-4000-8000-000000000000")
		p.down.pod(predecessor, "web-1-of-a-set-before", noNode(few5))
		p.down.create(pods, "{apiVersion: v1, kind: Pod, metadata: {name: nobodys, labels: {app: web}}, spec: {containers: [{name: c, image: i}]}, status: "+noNode(few5)+"}")
		p.down.pod(sum, "sum-a", noNode(taint))
		p.reset()
		p.rest()
		require.JSONEq(t, `{"pods":3,"message":"`+few5+`"}`, p.unscheduled(deployments, "web"))
		require.JSONEq(t, `{"pods":1,"message":"`+taint+`"}`, p.unscheduled(jobs, "sum"))
		require.Empty(t, unscheduled(p.down.get(deployments, "web"), target), "the count does not go down")
		require.ElementsMatch(t, []string{"patch deployments web", "patch jobs sum"}, p.up.writes())
		require.Empty(t, p.down.writes())

		// Nothing is written at rest, by a restart, or for a message in which only numbers have changed.
		p.reset()
		p.down.status("web-1-b", noNode(few12))
		p.down.status("web-2-a", noNode(few12))
		time.Sleep(3 * time.Minute)
		p.stop()
		p.start(syncer.Options{Unscheduled: counting})
		time.Sleep(3 * time.Minute)
		require.Empty(t, p.up.writes())
		var sets, lists int
		for _, r := range p.down.Requests() {
			if r.Resource == "replicasets" && r.Verb == "get" {
				sets++
			} else if r.Resource == "pods" && r.Verb == "list" {
				lists++
			}
		}
		require.Equal(t, 4, sets, "the second process reads each ReplicaSet once")
		require.Greater(t, lists, 50)

		// A new number of pods and a new message are written once each.
		p.down.delete(pods, "web-2-a")
		p.rest()
		require.JSONEq(t, `{"pods":2,"message":"`+few12+`"}`, p.unscheduled(deployments, "web"))
		require.Len(t, p.up.writes(), 1)
		p.down.status("web-1-b", noNode(taint))
		p.rest()
		require.JSONEq(t, `{"pods":2,"message":"`+taint+`"}`, p.unscheduled(deployments, "web"))
		require.Len(t, p.up.writes(), 2)

		// The scheduler finds nodes.
		for _, name := range []string{"web-1-a", "web-1-b", "sum-a"} {
			p.down.status(name, "{phase: Pending, conditions: [{type: PodScheduled, status: 'True', reason: Unschedulable}]}")
		}
		p.rest()
		require.Empty(t, p.unscheduled(deployments, "web"))
		require.Empty(t, p.unscheduled(jobs, "sum"))
		require.Len(t, p.up.writes(), 4)
		p.reset()
		time.Sleep(3 * time.Minute)
		require.Empty(t, p.up.writes())
	})
}

// While pods cannot be listed, the last count stays and statuses still go up. A missing right is reported once.
func TestUnscheduledIsNotKnown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{})}
		var mu sync.Mutex
		var told []string
		s, err := syncer.New(p.up.api, p.down.api, syncer.Options{Target: target, Unscheduled: counting, Observer: &syncer.Observer{Problem: func(_ context.Context, e syncer.ProblemEvent) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("%s %q %s", e.Resource, e.Object.Name, e.Reason))
		}}})
		require.NoError(t, err)
		heard := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(told)
		}
		p.Syncer, p.stop = s, run(t, s)
		p.up.create(deployments, deployment)
		p.rest()
		set := p.down.set(p.down.get(deployments, "web"), "web-1")
		p.down.pod(set, "web-1-a", noNode(few5))
		p.rest()
		require.JSONEq(t, `{"pods":1,"message":"`+few5+`"}`, p.unscheduled(deployments, "web"))

		p.down.pod(set, "web-1-b", noNode(few5))
		for _, fault := range []regiontest.Fault{
			{Verb: "list", Resource: pods.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)},
			{Verb: "list", Resource: pods.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusForbidden)},
		} {
			p.down.Reset()
			p.down.Inject(fault)
			p.up.Reset()
			time.Sleep(3 * time.Minute)
			require.Empty(t, p.up.writes())
		}
		require.Equal(t, []string{`pods "" Forbidden`}, heard())
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":1,"replicas":2}}`, "status")
		p.rest()
		require.EqualValues(t, 2, field(p.up.get(deployments, "web"), "status", "replicas"))
		p.down.Reset()
		p.rest()
		require.JSONEq(t, `{"pods":2,"message":"`+few5+`"}`, p.unscheduled(deployments, "web"))
		require.Equal(t, []string{`pods "" Forbidden`, `pods "" `}, heard())

		// The owner of a new ReplicaSet is unknown, since the syncer may not read ReplicaSets.
		p.down.pod(p.down.set(p.down.get(deployments, "web"), "web-2"), "web-2-a", noNode(few5))
		p.down.Inject(regiontest.Fault{Verb: "get", Resource: replicaSets.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
		p.rest()
		require.JSONEq(t, `{"pods":2,"message":"`+few5+`"}`, p.unscheduled(deployments, "web"))
		require.Len(t, heard(), 3)
	})
}

// The count is removed when Unscheduled is turned off, and when the object leaves the cluster.
func TestUnscheduledIsTakenBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Unscheduled: counting})
		p.up.create(deployments, deployment)
		p.rest()
		set := p.down.set(p.down.get(deployments, "web"), "web-1")
		p.down.pod(set, "web-1-a", noNode(few5))
		p.rest()
		require.NotEmpty(t, p.unscheduled(deployments, "web"))
		p.stop()
		p.start(syncer.Options{})
		require.Empty(t, p.unscheduled(deployments, "web"))
		p.stop()
		p.start(syncer.Options{Unscheduled: counting})
		p.rest()
		require.NotEmpty(t, p.unscheduled(deployments, "web"))
		// Another client changes the annotation.
		p.up.patch(deployments, "web", `{"metadata":{"annotations":{"unscheduled.syncer.atoll.dev/my-cluster":"many"}}}`)
		p.rest()
		require.JSONEq(t, `{"pods":1,"message":"`+few5+`"}`, p.unscheduled(deployments, "web"))
		p.reset()
		p.up.patch(deployments, "web", `{"metadata":{"labels":null}}`)
		p.rest()
		require.Empty(t, p.unscheduled(deployments, "web"))
		require.Len(t, p.up.writes(), 2, "the user's write and the finalizer")
	})
}

// If a downstream Deployment is recreated and adopts the ReplicaSets of its predecessor, their pods count again. This
// holds whether or not the ReplicaSets named the predecessor as their owner until then.
func TestUnscheduledOfACopyMadeAnew(t *testing.T) {
	for _, left := range []string{`{}`, `{"metadata":{"ownerReferences":null}}`} {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, syncer.Options{Unscheduled: counting})
			p.up.create(deployments, deployment)
			p.rest()
			web := p.down.get(deployments, "web")
			p.down.pod(p.down.set(web, "web-1"), "web-1-a", noNode(few5))
			p.rest()
			require.NotEmpty(t, p.unscheduled(deployments, "web"))
			p.down.patch(replicaSets, "web-1", left)
			p.down.delete(deployments, "web")
			p.rest()
			require.Empty(t, p.unscheduled(deployments, "web"), "the owner of the ReplicaSet is gone")
			again := p.down.get(deployments, "web")
			require.NotEqual(t, web.GetUID(), again.GetUID())
			p.down.patch(replicaSets, "web-1", fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":%q,"controller":true}]}}`, again.GetUID()))
			p.rest()
			require.NotEmpty(t, p.unscheduled(deployments, "web"))
		})
	}
}

// An object that is synced to several clusters has a count for each of them.
func TestUnscheduledInSeveralClusters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one := newPair(t, syncer.Options{Target: "one", Unscheduled: counting})
		two := &pair{t: t, up: one.up, down: newSide(t, "two", regiontest.Options{})}
		two.start(syncer.Options{Target: "two", Unscheduled: counting})
		one.up.create(deployments, strings.Replace(deployment, "name: web}", "name: web, labels: {state.workload.kcp.io/one: Sync, state.workload.kcp.io/two: Sync}}", 1))
		one.rest()
		two.down.pod(two.down.set(two.down.get(deployments, "web"), "web-1"), "web-1-a", noNode(few5))
		one.rest()
		up := one.up.get(deployments, "web")
		require.Empty(t, unscheduled(up, "one"))
		require.JSONEq(t, `{"pods":1,"message":"`+few5+`"}`, unscheduled(up, "two"))
	})
}

// The syncer counts the pods of all pages of a list, and cuts a long message of the scheduler.
func TestUnscheduledIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Unscheduled: counting})
		p.up.create(deployments, deployment)
		p.rest()
		set := p.down.set(p.down.get(deployments, "web"), "web-1")
		for i := range 501 { // more than a page
			p.down.pod(set, fmt.Sprint("web-1-", i), noNode(strings.Repeat("é", 200)))
		}
		p.rest()
		text := p.unscheduled(deployments, "web")
		require.Less(t, len(text), 300)
		require.Contains(t, text, `"pods":501`)
		require.Contains(t, text, "more bytes")
		p.reset()
		p.rest()
		require.Empty(t, p.up.writes())
	})
}
