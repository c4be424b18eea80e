// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter/placement"
)

var (
	autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	budgets     = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

func (w *world) autoscaler(name, target, labels string) {
	w.t.Helper()
	w.create(autoscalers, fmt.Sprintf("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: %s, labels: {%s}}, spec: {maxReplicas: 9, scaleTargetRef: {%s}}}", name, labels, target))
}

func (w *world) budget(name, spec string) {
	w.t.Helper()
	w.create(budgets, fmt.Sprintf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %s}, spec: {%s}}", name, spec))
}

// dependentsPlaced returns the condition DependentsPlaced of a policy, as STATUS REASON MESSAGE; empty if it has none.
func (w *world) dependentsPlaced(policy string) string {
	w.t.Helper()
	w.rest()
	conditions, _, _ := unstructured.NestedSlice(w.get(policies, policy).Object, "status", "conditions")
	for _, v := range conditions {
		if c := v.(map[string]any); c["type"] == "DependentsPlaced" {
			return fmt.Sprintf("%s %s %s", c["status"], c["reason"], c["message"])
		}
	}
	return ""
}

const (
	allPlaced  = "True Complete every object that belongs to the workloads is placed with them"
	notDivided = ": they are in no cluster, because their numbers are not divided: create one for the shard in each cluster"
	web        = "apiVersion: apps/v1, kind: Deployment, name: web"
)

// The status of a policy lists the autoscalers and disruption budgets of its workloads, which are not placed.
func TestUndividedObjectsAreReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.startPlacement(placement.Options{}, cluster("a"), cluster("b"))
		w.policy("all", "{dependents: true}")
		w.create(deployments, deployment("web", 4, ""))
		require.Equal(t, allPlaced, w.dependentsPlaced("all"))

		w.autoscaler("web", web, "")
		w.budget("web", "selector: {matchExpressions: [{key: app, operator: In, values: [web]}]}")
		require.Equal(t, "False Undivided HorizontalPodAutoscaler web (of Deployment web), PodDisruptionBudget web (of Deployment web)"+notDivided, w.dependentsPlaced("all"))

		w.remove(autoscalers, "web")
		w.patch(budgets, "web", `{"spec":{"selector":{"matchExpressions":null,"matchLabels":{"app":"other"}}}}`)
		require.Equal(t, allPlaced, w.dependentsPlaced("all"))
		w.patch(budgets, "web", `{"spec":{"selector":{"matchLabels":null}}}`)
		require.Equal(t, "False Undivided PodDisruptionBudget web (of Deployment web)"+notDivided, w.dependentsPlaced("all"), "an empty selector selects all pods")

		// The Splitter divides it.
		w.patch(budgets, "web", `{"metadata":{"finalizers":["splitter.atoll.dev/shards"]}}`)
		require.Equal(t, allPlaced, w.dependentsPlaced("all"))
		w.patch(budgets, "web", `{"metadata":{"finalizers":null}}`)

		// The workload leaves the policy, and the policy stops to place dependents.
		w.policy("other", "{dependents: true, priority: 1, selector: {matchLabels: {app: web}}}")
		require.Equal(t, allPlaced, w.dependentsPlaced("all"))
		require.Equal(t, "False Undivided PodDisruptionBudget web (of Deployment web)"+notDivided, w.dependentsPlaced("other"))
		w.patch(policies, "other", `{"spec":{"dependents":false}}`)
		require.Empty(t, w.dependentsPlaced("other"))
		before := len(w.writes())
		w.rest()
		require.Len(t, w.writes(), before)
	})
}

// Objects that belong to no workload of the policy, or that a client has given to a cluster, are not listed.
func TestObjectsThatAreNotListed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.startPlacement(placement.Options{}, cluster("a"), cluster("b"))
		w.policy("all", "{dependents: true}")
		w.create(deployments, deployment("web", 4, ""))
		w.autoscaler("name", "apiVersion: apps/v1, kind: Deployment, name: other", "")
		w.autoscaler("kind", "apiVersion: apps/v1, kind: StatefulSet, name: web", "")
		w.autoscaler("group", "apiVersion: example.com/v1, kind: Deployment, name: web", "")
		w.autoscaler("given", web, "state.workload.kcp.io/a: Sync")
		w.budget("none", "minAvailable: 1")
		w.budget("other", "selector: {matchLabels: {app: other}}")
		require.Equal(t, allPlaced, w.dependentsPlaced("all"))
		w.patch(autoscalers, "given", `{"metadata":{"labels":{"state.workload.kcp.io/a":null}}}`)
		require.Contains(t, w.dependentsPlaced("all"), "False Undivided HorizontalPodAutoscaler given (of Deployment web):")
	})
}

// The message lists ten objects and the number of the others. The Controller says that it does not know the objects if it
// may not read them. If the API server does not serve the types, there are none.
func TestUndividedObjectsThatCannotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("all", "{dependents: true}")
		w.create(deployments, deployment("web", 4, ""))
		for n := range 13 {
			w.budget(fmt.Sprintf("b-%02d", n), "selector: {matchLabels: {app: web}}")
		}
		w.Inject(regiontest.Fault{Verb: "list", Resource: budgets.GroupResource(), Times: 10, Do: regiontest.Refuse(http.StatusForbidden)},
			regiontest.Fault{Verb: "list", Resource: autoscalers.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusNotFound)})
		w.startPlacement(placement.Options{}, cluster("a"))
		unknown := w.dependentsPlaced("all")
		require.True(t, strings.HasPrefix(unknown, "Unknown Pending the objects that are not placed are not known: "), unknown)
		require.Contains(t, unknown, "poddisruptionbudgets")
		for range 10 {
			w.rest()
		}
		listed := w.dependentsPlaced("all")
		require.Contains(t, listed, "PodDisruptionBudget b-09 (of Deployment web), and 3 more"+notDivided)
		require.NotContains(t, listed, "b-10")
	})
}

// While the objects or the workloads cannot be read after a restart, the condition stays as it was, and nothing is written.
func TestUndividedObjectsAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("all", "{dependents: true}")
		w.create(deployments, deployment("web", 4, ""))
		w.budget("web", "selector: {matchLabels: {app: web}}")
		stop := w.startPlacement(placement.Options{}, cluster("a"))
		before := w.dependentsPlaced("all")
		require.Contains(t, before, "False Undivided PodDisruptionBudget web")
		for _, unread := range []schema.GroupVersionResource{budgets, deployments} {
			stop()
			w.clusters = nil
			w.Reset()
			w.Inject(regiontest.Fault{Verb: "list", Resource: unread.GroupResource(), Times: 20, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
			stop = w.startPlacement(placement.Options{}, cluster("a"))
			time.Sleep(time.Hour)
			require.Equal(t, before, w.dependentsPlaced("all"))
			require.Empty(t, w.writes())
		}
	})
}

// A program that places the types itself, as one of the others, gets no report about them.
func TestUndividedTypesThatAreOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.startPlacement(placement.Options{Others: []schema.GroupVersionResource{budgets}}, cluster("a"))
		w.policy("all", "{dependents: true}")
		w.create(deployments, deployment("web", 4, ""))
		w.budget("web", "selector: {matchLabels: {app: web}}")
		require.Equal(t, allPlaced, w.dependentsPlaced("all"))
	})
}

// The status of a policy lists the bindings that grant rights to the ServiceAccounts of its workloads. They are not placed.
func TestBindingsAreReported(t *testing.T) {
	const grants = ": they are in no cluster, because they grant rights: grant these rights to the ServiceAccounts in each cluster"
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.startPlacement(placement.Options{}, cluster("a"), cluster("b"))
		w.policy("all", "{dependents: true}")
		w.create(deployments, deployment("web", 4, ", serviceAccountName: robot"))
		group := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
		bindings, clusterBindings := group.WithResource("rolebindings"), group.WithResource("clusterrolebindings")
		bind := func(kind, name, subject string) string {
			return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [%s]}", kind, name, subject)
		}
		account := func(namespace, name string) string {
			return fmt.Sprintf("{kind: ServiceAccount, namespace: %s, name: %s}", namespace, name)
		}
		w.create(bindings, bind("RoleBinding", "group", "{kind: Group, apiGroup: rbac.authorization.k8s.io, name: robot}"))
		w.create(bindings, bind("RoleBinding", "other", account("default", "other")))
		w.create(bindings, bind("RoleBinding", "elsewhere", account("elsewhere", "robot")))
		require.Equal(t, allPlaced, w.dependentsPlaced("all"))
		w.create(bindings, bind("RoleBinding", "reads", account("default", "other")+", "+account("default", "robot")))
		require.Equal(t, "False RightsNotPlaced RoleBinding reads (of Deployment web)"+grants, w.dependentsPlaced("all"))
		data := unstructuredOf(t, bind("ClusterRoleBinding", "lists", account("default", "robot")))
		_, err := w.api.Dynamic().Resource(clusterBindings).Create(t.Context(), data, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, "False RightsNotPlaced ClusterRoleBinding lists (of Deployment web), RoleBinding reads (of Deployment web)"+grants, w.dependentsPlaced("all"))
		w.budget("web", "selector: {matchLabels: {app: web}}")
		require.Equal(t, "False Undivided PodDisruptionBudget web (of Deployment web)"+notDivided+"; ClusterRoleBinding lists (of Deployment web), RoleBinding reads (of Deployment web)"+grants, w.dependentsPlaced("all"))
		require.Equal(t, "NONE", w.targets(bindings, "reads"))

		w.remove(budgets, "web")
		w.remove(bindings, "reads")
		require.NoError(t, w.api.Dynamic().Resource(clusterBindings).Delete(t.Context(), "lists", metav1.DeleteOptions{}))
		require.Equal(t, allPlaced, w.dependentsPlaced("all"))
	})
}
