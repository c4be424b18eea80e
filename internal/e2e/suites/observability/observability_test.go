// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// TestObservability plays operations, users, synced and divided objects, and a region that is killed and started again.
// The alert about the region fires and ends, each rule is evaluated, and each panel of each dashboard has data.
func TestObservability(t *testing.T) {
	w, targets := newWorld(t)
	s := startPrometheus(t, targets)
	w.sync()
	w.use()
	w.operate()
	release := w.hold()
	s.requireRules(t)
	s.await(t, "AtollRegionDown")
	s.await(t, "AtollSyncerObjectProblems", "Objects of configmaps are not synced, for the reason Foreign: 1.")

	require.NoError(t, w.eu.Kill(t.Context()))
	s.await(t, "AtollRegionDown", "Region db.loodse answers no gateway.", "Region eu-1.loodse answers no gateway.")
	_, err := w.at("eu-1.loodse").Resource(configMaps).Namespace("default").List(t.Context(), metav1.ListOptions{})
	require.Error(t, err)

	require.NoError(t, w.eu.Restart(t.Context()))
	s.await(t, "AtollRegionDown")
	requirePanels(t, s)
	s.await(t, "AtollPeerCredentialsExpiring") // the credentials are valid for a year
	release()
	s.awaitSeries(t, "atoll_fanout_oldest_open_operation_timestamp_seconds", 0)
	s.requireRules(t)
}

// sync makes a cluster, a ConfigMap that is synced to it, and a Deployment that is placed there.
func (w *world) sync() {
	w.t.Helper()
	planetest.Apply(w.t, w.central, "{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: "+cluster+"}, spec: {}}")
	planetest.Apply(w.t, w.central, "{apiVersion: splitter.atoll.dev/v1alpha1, kind: PlacementPolicy, metadata: {name: all, namespace: default}, spec: {}}")
	planetest.Apply(w.t, w.eu, "{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: default}}") // it is not the syncer's
	for _, name := range []string{"foreign", "synced"} {
		planetest.Apply(w.t, w.central, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default, labels: {state.workload.kcp.io/%s: Sync}}, data: {key: ours}}", name, cluster))
	}
	planetest.Apply(w.t, w.central, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 2, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}}`)
	w.await(w.eu, configMaps, "default", "synced", "ours", "data", "key")
	planetest.Apply(w.t, w.eu, "{apiVersion: v1, kind: ConfigMap, metadata: {name: synced, namespace: default}, data: {key: theirs}}")
	w.await(w.eu, configMaps, "default", "synced", "ours", "data", "key") // the syncer overwrites the other client
	planetest.Eventually(w.t, soon, "the Deployment is divided and synced", func(ctx context.Context) error {
		list, err := planetest.Dynamic(w.t, w.eu.Config()).Resource(deployments).Namespace("default").List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("no Deployment is in the cluster")
		}
		return err
	})
}

// use lists and watches all regions, and sends requests that are refused.
func (w *world) use() {
	w.t.Helper()
	all := w.at("*").Resource(configMaps).Namespace("default")
	list, err := all.List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	require.NotEmpty(w.t, list.Items)
	for range 2 { // the second watch shares the watches of the first
		changes, err := all.Watch(w.t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		require.NoError(w.t, err)
		w.t.Cleanup(changes.Stop)
		planetest.Apply(w.t, w.eu, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: watched, namespace: default}, data: {by: %q}}", fmt.Sprintf("%p", changes)))
		for e := range changes.ResultChan() {
			if e.Type != watch.Bookmark && e.Object.(*unstructured.Unstructured).GetName() == "watched@eu-1.loodse" {
				break
			}
		}
	}
	_, err = w.at("moon.loodse").Resource(configMaps).List(w.t.Context(), metav1.ListOptions{})
	require.Error(w.t, err)
	stranger := *w
	stranger.clients = w.servers // an authority that the gateway does not trust for clients
	_, err = stranger.at("eu-1.loodse").Resource(configMaps).List(w.t.Context(), metav1.ListOptions{})
	require.Error(w.t, err)
}

// hold begins the removal of an Account, which stays open until release is called.
func (w *world) hold() (release func()) {
	w.t.Helper()
	central, eu := planetest.Dynamic(w.t, w.central.Config()).Resource(accounts), planetest.Dynamic(w.t, w.eu.Config()).Resource(accounts)
	planetest.Apply(w.t, w.central, "{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: held}, spec: {roles: [Tenant]}}")
	w.await(w.eu, accounts, "", "held", "Ready", "status", "phase")
	finalizers := func(op string) {
		w.t.Helper()
		planetest.Eventually(w.t, soon, "the finalizer of the Account held: "+op, func(ctx context.Context) error {
			held, err := eu.Get(ctx, "held", metav1.GetOptions{})
			if err != nil {
				return err
			}
			kept := slices.DeleteFunc(held.GetFinalizers(), func(f string) bool { return f == "example.com/hold" })
			if op == "add" {
				kept = append(kept, "example.com/hold")
			}
			held.SetFinalizers(kept)
			_, err = eu.Update(ctx, held, metav1.UpdateOptions{})
			return err
		})
	}
	finalizers("add")
	require.NoError(w.t, central.Delete(w.t.Context(), "held", metav1.DeleteOptions{}))
	return func() {
		w.t.Helper()
		finalizers("remove")
		w.gone(w.eu, accounts, "held")
		w.gone(w.central, accounts, "held")
	}
}

// operate adds and removes an Account by the gateway, and by the manager, makes a ServiceCluster Ready, and rotates
// credentials.
func (w *world) operate() {
	w.t.Helper()
	account := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "catalog.kubecarrier.io/v1alpha1", "kind": "Account", "metadata": map[string]any{"name": name}, "spec": map[string]any{"roles": []any{"Tenant"}},
		}}
	}
	atGateway := w.at("eu-1.loodse").Resource(accounts)
	_, err := atGateway.Create(w.t.Context(), account("acme"), metav1.CreateOptions{})
	require.NoError(w.t, err)
	require.NoError(w.t, atGateway.Delete(w.t.Context(), "acme", metav1.DeleteOptions{}))
	central := planetest.Dynamic(w.t, w.central.Config()).Resource(accounts)
	_, err = central.Create(w.t.Context(), account("team"), metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.await(w.eu, accounts, "", "team", "Ready", "status", "phase")
	require.NoError(w.t, central.Delete(w.t.Context(), "team", metav1.DeleteOptions{}))
	w.gone(w.eu, accounts, "team")
	w.gone(w.central, accounts, "team")

	planetest.Apply(w.t, w.eu, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: %s}, stringData: {kubeconfig: %q}}", provider, w.central.Kubeconfig()))
	_, err = w.at("eu-1.loodse").Resource(services).Namespace(provider).Create(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubecarrier.io/v1alpha1", "kind": "ServiceCluster", "metadata": map[string]any{"name": "db"}, "spec": map[string]any{"kubeconfigSecret": map[string]any{"name": "db"}},
	}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.await(w.eu, services, provider, "db", "Ready", "status", "phase")
	w.rotate()
	// Another client deletes a Role of the Account, and the manager makes it again.
	role := planetest.Dynamic(w.t, w.eu.Config()).Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}).Namespace(provider)
	require.NoError(w.t, role.Delete(w.t.Context(), "kubecarrier-provider", metav1.DeleteOptions{}))
}
