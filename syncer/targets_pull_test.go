// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	secretResource      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// pulling makes Targets install what is needed in the cluster.
func pulling(o *syncer.TargetsOptions) {
	o.Mode = func(*v1alpha1.SyncTarget) syncer.Mode { return syncer.Pull }
	o.Install = func(context.Context, *v1alpha1.SyncTarget) (syncer.Install, error) {
		return syncer.Install{Kubeconfig: []byte("k"), Image: "i", Types: []schema.GroupResource{configMaps.GroupResource()}}, nil
	}
}

// patient never takes a heartbeat that is late for silence.
func patient(o *syncer.TargetsOptions) { o.Heartbeat = time.Hour }

func elsewhere(o *syncer.TargetsOptions) {
	o.Mode = func(*v1alpha1.SyncTarget) syncer.Mode { return syncer.None }
}

// installation is the name of what is installed for the target.
func (f *fleet) installation() string {
	f.t.Helper()
	system, err := f.up.client.Resource(namespaces).Get(f.t.Context(), "kube-system", metav1.GetOptions{})
	require.NoError(f.t, err)
	all, err := syncer.Manifests(syncer.Install{Target: target, Upstream: string(system.GetUID()), Kubeconfig: []byte("k"), Image: "i"})
	require.NoError(f.t, err)
	return all[0].GetName()
}

// there says whether the cluster has an object; namespace empty: of no namespace.
func (f *fleet) there(gvr schema.GroupVersionResource, namespace, name string) bool {
	f.t.Helper()
	_, err := f.down.client.Resource(gvr).Namespace(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(f.t, err)
	}
	return err == nil
}

// agent runs what is installed, until it is stopped.
func (f *fleet) agent() (*syncer.Agent, func()) {
	f.t.Helper()
	a, err := syncer.NewAgent(f.up.api, f.down.api, syncer.Options{
		Target: target, Heartbeat: 100 * time.Millisecond, Discovery: 100 * time.Millisecond,
		Types: func(gr schema.GroupResource) bool { return gr == configMaps.GroupResource() },
	})
	require.NoError(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		require.NoError(f.t, <-done)
	})
	f.t.Cleanup(stop)
	return a, stop
}

func (f *fleet) deleteTarget() {
	f.t.Helper()
	require.NoError(f.t, f.up.client.Resource(syncTargets).Delete(f.t.Context(), target, metav1.DeleteOptions{}))
}

func (f *fleet) targetIsGone() {
	f.t.Helper()
	f.eventually("the SyncTarget is gone", func() bool {
		_, err := f.up.client.Resource(syncTargets).Get(f.t.Context(), target, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// The life of a syncer that is installed: it comes, is kept, works, and nothing is left of it.
func TestPull(t *testing.T) {
	f := newFleet(t, pulling, patient)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Progressing")
	f.says("Ready Unknown Pending")
	name := f.installation()
	for _, gvr := range []schema.GroupVersionResource{namespaces, clusterRoles, clusterRoleBindings} {
		require.True(t, f.there(gvr, "", name), gvr.Resource)
	}
	require.True(t, f.there(secretResource, name, "upstream"))
	require.Nil(t, f.targets.Syncer(target), "it does not run here")

	apps := f.down.client.Resource(deployments).Namespace(name)
	run := func() {
		_, err := apps.Patch(t.Context(), "syncer", "application/merge-patch+json",
			[]byte(`{"status":{"availableReplicas":1,"readyReplicas":1,"replicas":1,"updatedReplicas":1,"observedGeneration":9}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
	run()
	f.says("Installed True Installed")

	require.NoError(t, apps.Delete(t.Context(), "syncer", metav1.DeleteOptions{}))
	f.eventually("it is there again", func() bool { return f.there(deployments, name, "syncer") })
	f.says("Installed False Progressing")
	run()
	f.says("Installed True Installed")
	require.NoError(t, f.down.client.Resource(clusterRoles).Delete(t.Context(), name, metav1.DeleteOptions{}))
	f.eventually("the rights are there again", func() bool { return f.there(clusterRoles, "", name) })

	agent, _ := f.agent()
	f.up.create(configMaps, a)
	f.eventually("the copy", func() bool { return f.down.get(configMaps, "a") != nil })
	f.says("Ready True Syncing")
	f.says("Installed True Installed")

	f.deleteTarget()
	f.targetIsGone()
	for _, gvr := range []schema.GroupVersionResource{namespaces, clusterRoles, clusterRoleBindings} {
		require.False(t, f.there(gvr, "", name), gvr.Resource)
	}
	require.Empty(t, f.up.get(configMaps, "a").GetFinalizers())
	require.NotNil(t, f.down.get(configMaps, "a"), "what runs goes on")
	require.Nil(t, agent.Syncer(), "nobody takes hold of what was let go")
	f.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)

	// The next of that name is served anew, by the same process.
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Ready True Syncing")
	f.eventually("the change", func() bool { return field(f.down.get(configMaps, "a"), "data", "k") == "w" })
}

// What somebody else has put in the place of ours stays as it is, also in the end.
func TestPullForeign(t *testing.T) {
	f := newFleet(t, pulling)
	name := f.installation()
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name},
	}}
	_, err := f.down.client.Resource(clusterRoles).Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Foreign")
	f.deleteTarget()
	f.targetIsGone()
	require.True(t, f.there(clusterRoles, "", name))
	require.False(t, f.there(namespaces, "", name))
}

// Nobody can tell a cluster that is away from one that is no more: a person says so.
func TestPullAbandoned(t *testing.T) {
	f := newFleet(t, pulling)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Progressing")
	f.down.Partition(true)
	f.deleteTarget()
	f.says("Installed False Unreachable")
	require.NotEmpty(t, f.target().Finalizers)
	f.patchTarget(`{"metadata":{"annotations":{"` + v1alpha1.AbandonAnnotation + `":"true"}}}`)
	f.targetIsGone()
	f.down.Partition(false)
	require.True(t, f.there(namespaces, "", f.installation()))
}

// What cannot be installed is said, and nobody is kept by it.
func TestPullWithoutInstall(t *testing.T) {
	f := newFleet(t, func(o *syncer.TargetsOptions) {
		o.Mode = func(*v1alpha1.SyncTarget) syncer.Mode { return syncer.Pull }
	})
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Refused")
	f.deleteTarget()
	f.targetIsGone()
}

// Of a syncer elsewhere it is said whether it is alive. Whoever still syncs is not overtaken when the SyncTarget goes.
func TestNone(t *testing.T) {
	f := newFleet(t, elsewhere)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Ready Unknown Pending")
	require.Nil(t, f.targets.Syncer(target))
	require.Empty(t, f.targets.Connected())
	_, stop := f.agent()
	f.says("Ready True Syncing")
	stop()
	f.says("Ready Unknown Silent")
	f.says("Reachable Unknown Silent")
	f.agent()
	f.says("Ready True Syncing")
	require.Empty(t, f.target().Finalizers)
	require.False(t, f.there(namespaces, "", f.installation()))
	f.deleteTarget()
	f.targetIsGone()
}

// What others say of definitions is part of what is compatible, and does not keep anything else from being synced.
func TestTypesOfTargets(t *testing.T) {
	for name, change := range map[string]func(*syncer.TargetsOptions){"push": func(*syncer.TargetsOptions) {}, "none": elsewhere} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, change)
			f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
			if name == "none" {
				f.agent()
			}
			f.says("TypesCompatible True Compatible")
			require.False(t, slices.ContainsFunc(f.target().Status.Conditions, func(c metav1.Condition) bool { return c.Type == "TypesDefined" }))
			f.targets.SetTypes(target, nil, false)
			f.says("TypesDefined Unknown Pending")
			f.targets.SetTypes(target, []string{"things.example.org (Refused: no)"}, true)
			f.says("TypesDefined False Incompatible")
			f.says("TypesCompatible False Incompatible")
			require.Contains(t, asJSON(t, f.target().Status), "things.example.org (Refused: no)")
			f.up.create(configMaps, a)
			f.eventually("the copy", func() bool { return f.down.get(configMaps, "a") != nil })
			// More than an API server takes of a condition is not left unsaid.
			f.targets.SetTypes(target, []string{"long (" + strings.Repeat("ö", 40000) + ")"}, true)
			for _, kind := range []string{"TypesDefined", "TypesCompatible"} {
				f.eventually(kind+" says how much it does not say", func() bool {
					c := meta.FindStatusCondition(f.target().Status.Conditions, kind)
					return strings.HasPrefix(c.Message, "long (ö") && strings.HasSuffix(c.Message, "more bytes)") && len(c.Message) <= 4096
				})
			}
			f.targets.SetTypes(target, nil, true)
			f.says("TypesDefined True Compatible")
			f.says("TypesCompatible True Compatible")
		})
	}
}

// An Agent refuses what a Syncer does.
func TestNewAgent(t *testing.T) {
	up, down := newSide(t, "up", regiontest.Options{}), newSide(t, "down", regiontest.Options{})
	_, err := syncer.NewAgent(up.api, down.api, syncer.Options{})
	require.ErrorContains(t, err, "Target")
	_, err = syncer.NewAgent(nil, down.api, syncer.Options{Target: target})
	require.Error(t, err)

	same := newSide(t, "same", withTargets(t))
	_, err = same.client.Resource(syncTargets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": target},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	a, err := syncer.NewAgent(same.api, same.api, syncer.Options{Target: target})
	require.NoError(t, err)
	require.ErrorContains(t, a.Start(t.Context()), "same cluster")
	require.ErrorContains(t, a.Start(t.Context()), "twice")
}

// Heartbeats are no reason to apply what is installed again.
func TestPullRests(t *testing.T) {
	f := newFleet(t, pulling, func(o *syncer.TargetsOptions) { o.Recheck = time.Hour })
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Progressing")
	f.agent()
	f.says("Ready True Syncing")
	f.eventually("the watch of the Deployment has told all", func() bool {
		f.down.Reset()
		before := f.target().Status.LastSyncerHeartbeatTime
		f.eventually("two heartbeats", func() bool { return f.target().Status.LastSyncerHeartbeatTime.Sub(before.Time) >= 2*time.Second })
		return len(f.down.writes()) == 0
	})
}

// Whoever may still sync has to end before objects are let go: else it would take hold of them again.
func TestPullWaitsForTheAgent(t *testing.T) {
	f := newFleet(t, pulling, patient)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Progressing")
	_, err := f.up.client.Resource(syncTargets).Patch(t.Context(), target, types.MergePatchType,
		[]byte(`{"status":{"lastSyncerHeartbeatTime":"2026-01-01T00:00:00Z"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	f.eventually("it is held", func() bool { return len(f.target().Finalizers) > 0 })
	name := f.installation()
	f.deleteTarget()
	f.eventually("nothing is left in the cluster", func() bool { return !f.there(namespaces, "", name) })
	for _, look := range []string{"one", "two"} {
		f.down.Reset()
		f.patchTarget(`{"metadata":{"annotations":{"look":"` + look + `"}}}`)
		f.eventually("it is looked at again", func() bool {
			return slices.ContainsFunc(f.down.Requests(), func(r regiontest.Request) bool { return r.Resource == "namespaces" && r.Name == name })
		})
	}
	require.NotEmpty(t, f.target().Finalizers)
	f.agent() // which sees that it has nothing to do, and says so
	f.targetIsGone()
}

// What was installed decides which types are let go in the end, not what Syncers in this process would sync.
func TestPullLetsGoWhatWasInstalled(t *testing.T) {
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	f := newFleet(t, pulling, func(o *syncer.TargetsOptions) {
		install := o.Install
		o.Configure = nil
		o.Install = func(ctx context.Context, target *v1alpha1.SyncTarget) (syncer.Install, error) {
			in, err := install(ctx, target)
			in.Types = append(in.Types, roles.GroupResource())
			return in, err
		}
	})
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Refused") // for want of a permit, which an earlier release did not ask for
	f.up.create(roles, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, finalizers: ["+v1alpha1.FinalizerPrefix+target+"]}}")
	f.deleteTarget()
	f.targetIsGone()
	require.Empty(t, f.up.get(roles, "a").GetFinalizers())
}
