// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// The controller syncs to a SyncTarget with an inline kubeconfig, as in the demonstration. After
// the SyncTarget is deleted, the upstream objects have no finalizer, and the downstream objects
// stay.
func TestTargetInline(t *testing.T) {
	f := newFleet(t, targets.Push, nil)
	kubeconfig := runAs(t, f.down.plane, "targets", rights.Syncing{Downstream: true, Types: few})
	f.register("inline", fmt.Sprintf("{kubeconfig: %q}", kubeconfig))
	f.create("inline", configMaps, fmt.Sprintf(aConfigMap, "a"))
	f.create("inline", deployments, fmt.Sprintf(aDeployment, "a"))
	f.down.has(configMaps, "a", map[string]string{"data.k": "v"})
	f.up.has(deployments, "a", map[string]string{"status.readyReplicas": "1", "status.observedGeneration": "1"})
	f.says("inline", "Ready", "True", "Syncing")
	f.says("inline", "TypesCompatible", "True", "Compatible")
	f.up.global().has(syncTargets, "inline", map[string]string{"status.capacity.pods": "1M"}) // the capacity of KWOK's node
	for _, s := range f.targets.Syncer("inline").Status().Types {
		require.NoError(t, s.Err, s.Resource)
		require.Empty(t, s.Problems, s.Resource)
	}

	f.delete("inline")
	gone(t, f.up, syncTargets, "", "inline")
	f.up.has(configMaps, "a", map[string]string{"metadata.finalizers": ""})
	f.up.delete(configMaps, "a")
	f.up.lacks(configMaps, "a")
	f.down.has(configMaps, "a", map[string]string{"data.k": "v"}) // downstream objects are kept
}

// The kubeconfig in a Secret is replaced by that of another user while the Syncer runs. The same
// Syncer syncs the next change. If a SyncTarget is deleted while the cluster is unreachable, the
// controller still removes the finalizers of the upstream objects: this needs only the upstream.
func TestTargetOfASecret(t *testing.T) {
	f := newFleet(t, targets.Push, nil)
	f.register("rotated", fmt.Sprintf("{kubeconfigSecret: {name: k, namespace: %s}}", f.up.namespace))
	f.says("rotated", "Ready", "False", "KubeconfigInvalid")
	cluster, _, _ := rights.Sync("targets", rights.Syncing{Downstream: true, Types: few})
	grant := func(user string) {
		kubeconfig, err := f.down.plane.KubeconfigFor(user)
		require.NoError(t, err)
		role := user + "-" + f.up.namespace
		rules := ""
		for _, r := range cluster[0].Rules {
			rules += fmt.Sprintf("{apiGroups: %q, resources: %q, verbs: [%s], resourceNames: [%s]},", r.APIGroups, r.Resources, list(r.Verbs), list(r.ResourceNames))
		}
		planetest.Apply(t, f.down.plane, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s}, rules: [%s]}", role, rules))
		planetest.Apply(t, f.down.plane, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %s}, "+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]}", role, user))
		f.secret("k", kubeconfig)
	}
	grant("first")
	f.create("rotated", configMaps, fmt.Sprintf(aConfigMap, "a"))
	f.down.has(configMaps, "a", map[string]string{"data.k": "v"})
	f.says("rotated", "Ready", "True", "Syncing")
	serving := f.targets.Syncer("rotated")

	grant("second")
	f.down.revoke(t, "first-"+f.up.namespace)
	f.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)
	f.down.has(configMaps, "a", map[string]string{"data.k": "w"})
	f.says("rotated", "Ready", "True", "Syncing")
	require.Same(t, serving, f.targets.Syncer("rotated"))

	require.NoError(t, f.down.plane.Pause(t.Context()))
	resumed := false
	t.Cleanup(func() {
		if !resumed {
			require.NoError(t, f.down.plane.Resume(context.WithoutCancel(t.Context())))
		}
	})
	f.delete("rotated")
	gone(t, f.up, syncTargets, "", "rotated")
	f.up.has(configMaps, "a", map[string]string{"metadata.finalizers": ""})
	require.NoError(t, f.down.plane.Resume(t.Context()))
	resumed = true
	f.down.has(configMaps, "a", map[string]string{"data.k": "w"})
}

// revoke deletes the binding of a user's rights.
func (s *side) revoke(t *testing.T, binding string) {
	t.Helper()
	require.NoError(t, s.api.Dynamic().Resource(gvr("rbac.authorization.k8s.io", "v1", "clusterrolebindings")).Delete(t.Context(), binding, metav1.DeleteOptions{}))
}

func list(words []string) string {
	text := ""
	for _, w := range words {
		text += fmt.Sprintf("%q,", w)
	}
	return text
}
