// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// One Deployment per chosen cluster follows the ClusterDaemonSet from its creation to its deletion, while clusters join,
// become unreachable, drain and leave. At rest nothing is written, also not after a restart.
func TestLife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := cluster("a"), cluster("b")
		stop := w.run(clusterdaemonset.Options{}, a, b)
		w.create(sets, agent("agent", "replicasPerCluster: 2"))
		require.Equal(t, "0/2 False ClustersNotReady: 2 of 2 clusters are not ready: a 0 of 2, b 0 of 2", w.status("agent"))
		require.Equal(t, []string{"agent--a@a", "agent--b@b"}, w.copies())
		copied := w.get(deployments, "agent--a")
		require.Equal(t, "edge", copied.GetLabels()["team"])
		require.NotContains(t, copied.GetLabels(), "argocd.argoproj.io/instance")
		require.Equal(t, map[string]string{"note": "hello", "splitter.atoll.dev/parent-name": "agent", "splitter.atoll.dev/cluster": "a"}, copied.GetAnnotations())
		spec := copied.Object["spec"].(map[string]any)
		require.Equal(t, int64(2), spec["replicas"])
		require.Equal(t, map[string]any{"matchLabels": map[string]any{"app": "agent"}}, spec["selector"])

		w.works(1, "agent--a")
		w.works(2, "agent--b")
		require.Equal(t, "1/2 False ClustersNotReady: 1 of 2 clusters are not ready: a 1 of 2", w.status("agent"))
		w.works(2, "agent--a")
		require.Equal(t, "2/2 True Complete: all 2 clusters are ready", w.status("agent"))

		w.set(a, b, cluster("c"))
		require.Equal(t, "2/3 False ClustersNotReady: 1 of 3 clusters are not ready: c 0 of 2", w.status("agent"))
		w.works(2, "agent--c")
		w.set(a, silent(b), cluster("c"))
		require.Equal(t, "2/3 (1 unknown) Unknown ClustersUnknown: 1 of 3 clusters are unreachable: b", w.status("agent"))
		time.Sleep(24 * time.Hour)
		require.Len(t, w.copies(), 3, "an unreachable cluster keeps its Deployment")
		w.patch(sets, "agent", `{"spec":{"replicasPerCluster":1}}`)
		require.Equal(t, "0/3 (1 unknown) False ClustersNotReady: 2 of 3 clusters are not ready: a rolls it out, c rolls it out; unreachable: b", w.status("agent"))
		w.works(1, "agent--a", "agent--b", "agent--c")
		w.set(a, draining(b), cordoned(cluster("c")), cordoned(cluster("d")))
		require.Equal(t, "2/2 True Complete: all 2 clusters are ready", w.status("agent"))
		require.Equal(t, []string{"agent--a@a", "agent--c@c"}, w.copies(), "a drained cluster has none, and a cordoned one gets none")
		w.set(a)
		require.Equal(t, "1/1 True Complete: all 1 clusters are ready", w.status("agent"))

		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes())
		stop()
		w.run(clusterdaemonset.Options{}, a)
		w.rest()
		require.Empty(t, w.writes(), "a restart writes nothing")

		w.remove(sets, "agent")
		w.rest()
		require.Nil(t, w.get(sets, "agent"))
		require.Empty(t, w.copies())
	})
}

// A cluster that is to be drained later loses its Deployment at that time, without an event.
func TestDrainAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		later := cluster("b")
		later.EvictAfter = time.Now().Add(time.Hour)
		w.run(clusterdaemonset.Options{}, cluster("a"), later)
		w.create(sets, agent("agent", ""))
		time.Sleep(59 * time.Minute)
		require.Len(t, w.copies(), 2)
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"agent--a@a"}, w.copies())
	})
}

// The selector of clusters chooses by the labels of clusters, as they are now.
func TestClusterSelector(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(clusterdaemonset.Options{}, cluster("a", "zone=one"), cluster("b", "zone=two"))
		w.create(sets, agent("agent", "clusterSelector: {matchLabels: {zone: one}}"))
		require.Equal(t, "0/1 False ClustersNotReady: 1 of 1 clusters are not ready: a 0 of 1", w.status("agent"))
		w.set(cluster("a", "zone=two"), cluster("b", "zone=one"))
		require.Equal(t, "0/1 False ClustersNotReady: 1 of 1 clusters are not ready: b 0 of 1", w.status("agent"))
		require.Equal(t, []string{"agent--b@b"}, w.copies())
		w.patch(sets, "agent", `{"spec":{"clusterSelector":{"matchLabels":{"zone":"three"}}}}`)
		require.Equal(t, "0/0 False NoClusters: no cluster is chosen", w.status("agent"))
		require.Empty(t, w.copies())
	})
}

// While the spec cannot be carried out, the present Deployments stay as they are, apart from a drain. The condition
// names the fault.
func TestSpecThatCannotBeCarriedOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := cluster("a"), cluster("b")
		w.run(clusterdaemonset.Options{}, a, b)
		w.create(sets, agent("agent", ""))
		w.rest()
		w.works(1, "agent--a", "agent--b")
		w.patch(sets, "agent", `{"spec":{"clusterSelector":{"matchExpressions":[{"key":"zone","operator":"Odd"}]}}}`)
		require.Equal(t, `2/2 False Invalid: spec.clusterSelector: "Odd" is not a valid label selector operator`, w.status("agent"))
		w.set(a, draining(b), cluster("c"))
		require.Equal(t, `1/1 False Invalid: spec.clusterSelector: "Odd" is not a valid label selector operator`, w.status("agent"))
		require.Equal(t, []string{"agent--a@a"}, w.copies())
		w.patch(sets, "agent", `{"spec":{"clusterSelector":null,"template":{"metadata":{"labels":{"app":"other"}}}}}`)
		require.Contains(t, w.status("agent"), "False Invalid: spec.selector does not match spec.template.metadata.labels")
		w.patch(sets, "agent", `{"spec":{"template":{"metadata":{"labels":{"app":"agent"}}}}}`)
		w.rest()
		w.works(1, "agent--c")
		require.Equal(t, "2/2 True Complete: all 2 clusters are ready", w.status("agent"))
	})
}

// The API server rejects a template: the condition has its message, and no other cluster is tried.
func TestRejectedTemplate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.Inject(regiontest.Fault{Verb: "patch", Resource: deployments.GroupResource(), Do: regiontest.Refuse(422), Times: 2})
		w.run(clusterdaemonset.Options{}, cluster("a"), cluster("b"))
		w.create(sets, agent("agent", ""))
		time.Sleep(300 * time.Millisecond)
		obj := w.get(sets, "agent")
		require.Contains(t, fmt.Sprint(obj.Object["status"]), "Invalid")
		require.Empty(t, w.copies())
		require.Equal(t, "0/2 False ClustersNotReady: 2 of 2 clusters are not ready: a 0 of 1, b 0 of 1", w.status("agent"))
	})
}

// A Deployment that another client changes, deletes or strips of its annotations is repaired. A copy under another name
// stays, and so does an object with the name of a Deployment.
func TestRepair(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run(clusterdaemonset.Options{}, cluster("a"), cluster("b"))
		w.create(deployments, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: agent--b}, spec: {replicas: 7, selector: {matchLabels: {app: mine}}, template: {metadata: {labels: {app: mine}}}}}`)
		w.create(sets, agent("agent", ""))
		require.Equal(t, "0/2 False NameTaken: other clients' Deployments have these names: agent--b", w.status("agent"))
		w.patch(deployments, "agent--a", `{"spec":{"replicas":5},"metadata":{"labels":{"workloads.kcp.io/cluster":"z"}}}`)
		w.rest()
		copied := w.get(deployments, "agent--a")
		replicas, _, _ := unstructured.NestedInt64(copied.Object, "spec", "replicas")
		require.Equal(t, int64(1), replicas)
		require.Equal(t, "a", copied.GetLabels()["workloads.kcp.io/cluster"])
		w.remove(deployments, "agent--a")
		w.rest()
		require.NotEqual(t, copied.GetUID(), w.get(deployments, "agent--a").GetUID())
		for _, restart := range []bool{false, true} {
			if restart {
				stop()
			}
			w.patch(deployments, "agent--a", `{"metadata":{"annotations":null}}`)
			if restart {
				w.run(clusterdaemonset.Options{}, cordoned(cluster("a")), cluster("b"))
			}
			w.rest()
			require.Equal(t, "agent", w.get(deployments, "agent--a").GetAnnotations()["splitter.atoll.dev/parent-name"])
		}
		other := w.get(deployments, "agent--a").DeepCopy()
		clone := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": other.Object["spec"]}}
		clone.SetName("mine")
		clone.SetLabels(other.GetLabels())
		clone.SetAnnotations(other.GetAnnotations())
		_, err := w.of(deployments).Create(t.Context(), clone, metav1.CreateOptions{})
		require.NoError(t, err)
		w.remove(sets, "agent")
		w.rest()
		require.Nil(t, w.get(sets, "agent"))
		require.Equal(t, []string{"agent--b@", "mine@a"}, w.copies())
		replicas, _, _ = unstructured.NestedInt64(w.get(deployments, "agent--b").Object, "spec", "replicas")
		require.Equal(t, int64(7), replicas)
	})
}

// The name of a Deployment becomes free: it is created without a further event.
func TestANameBecomesFree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(deployments, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: agent--a}, spec: {selector: {matchLabels: {app: mine}}, template: {metadata: {labels: {app: mine}}}}}`)
		w.run(clusterdaemonset.Options{}, cluster("a"))
		w.create(sets, agent("agent", ""))
		require.Contains(t, w.status("agent"), "NameTaken")
		w.Reset()
		w.rest()
		require.Empty(t, w.writes(), "a taken name is only read")
		w.remove(deployments, "agent--a")
		require.Contains(t, w.status("agent"), "a 0 of 1")
	})
}

// A ClusterDaemonSet whose finalizer was removed by force leaves Deployments behind. They are deleted, and those of a
// ClusterDaemonSet of the same name replace them.
func TestOrphans(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.run(clusterdaemonset.Options{}, cluster("a"), cluster("b"))
		w.create(sets, agent("agent", ""))
		w.create(sets, agent("other", ""))
		w.rest()
		before := w.get(deployments, "agent--a")
		stop()
		for _, name := range []string{"agent", "other"} {
			w.patch(sets, name, `{"metadata":{"finalizers":null}}`)
			w.remove(sets, name)
		}
		w.create(sets, agent("agent", ""))
		w.run(clusterdaemonset.Options{}, cluster("a"), cluster("b"))
		w.rest()
		require.Equal(t, []string{"agent--a@a", "agent--b@b"}, w.copies())
		require.NotEqual(t, before.GetUID(), w.get(deployments, "agent--a").GetUID())
	})
}

// A ClusterDaemonSet that a label assigns to a cluster is synced there, and not carried out here.
func TestAssignedToACluster(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(clusterdaemonset.Options{Label: "example.com/cluster", Workers: 1}, cluster("a"))
		w.create(sets, agent("agent", ""))
		w.rest()
		require.Equal(t, "a", w.get(deployments, "agent--a").GetLabels()["example.com/cluster"])
		w.patch(sets, "agent", `{"metadata":{"labels":{"example.com/cluster":"a"}}}`)
		w.rest()
		require.Empty(t, w.copies())
		require.Empty(t, w.get(sets, "agent").GetFinalizers())
	})
}

// A Splitter and a placement Controller with policies for everything leave the Deployments of a ClusterDaemonSet alone,
// also if the Splitter looks for clusters by another label.
func TestOthersLeaveItAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		clusters := splitter.StaticClusters("a", "b")
		s, err := splitter.New(w.api, clusters, splitter.Options{Label: "example.com/cluster"})
		require.NoError(t, err)
		w.start(s.Start)
		everything, err := config.CRD("placementpolicies.splitter.atoll.dev")
		require.NoError(t, err)
		require.NoError(t, w.AddCRD(everything))
		p, err := placement.New(w.api, splitter.StaticClusters("a", "b"), placement.Options{Default: &v1alpha1.PlacementPolicySpec{}})
		require.NoError(t, err)
		w.start(p.Start)
		w.run(clusterdaemonset.Options{}, cluster("a"), cluster("b"))
		w.create(sets, agent("agent", ""))
		w.rest()
		require.Equal(t, []string{"agent--a@a", "agent--b@b"}, w.copies())
		require.NotContains(t, w.get(deployments, "agent--a").GetAnnotations(), "splitter.atoll.dev/placement")
	})
}

// A message names at most ten clusters, and the status stays small with hundreds of them.
func TestHundredsOfClusters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		var clusters []splitter.Cluster
		for i := range 300 {
			clusters = append(clusters, cluster(fmt.Sprintf("%03d-%s", i, strings.Repeat("c", 59))))
		}
		w.run(clusterdaemonset.Options{}, clusters...)
		w.create(sets, agent("agent", ""))
		status := w.status("agent")
		require.Contains(t, status, "0/300 False ClustersNotReady: 300 of 300 clusters are not ready: 000-")
		require.Contains(t, status, " and 290 more")
		require.Less(t, len(status), 2000)
		require.Len(t, w.copies(), 300)
	})
}

// The Observer gets the names of the Deployments that were written and removed, and errors.
func TestObserver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		var events []string
		w.Inject(regiontest.Fault{Verb: "patch", Resource: deployments.GroupResource(), Do: regiontest.Refuse(503)})
		w.run(clusterdaemonset.Options{Observer: &clusterdaemonset.Observer{Carried: func(_ context.Context, e clusterdaemonset.CarriedEvent) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, fmt.Sprint(e.ClusterDaemonSet.Name, e.Written, e.Removed, e.Err != nil))
		}}}, cluster("a"))
		w.create(sets, agent("agent", ""))
		w.rest()
		w.remove(sets, "agent")
		w.rest()
		require.Equal(t, []string{"agent[] [] true", "agent[agent--a] [] false", "agent[] [agent--a] false"}, events)
	})
}
