// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets_test

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
	"github.com/atoll-dev/atoll/syncer/targets"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// pulling makes the Controller install a syncer in the cluster.
func pulling(o *targets.Options) {
	o.Mode = func(*v1alpha1.SyncTarget) targets.Mode { return targets.Pull }
	o.Install = func(context.Context, *v1alpha1.SyncTarget) (targets.Install, error) {
		return targets.Install{Kubeconfig: []byte("k"), Image: "i", Types: []schema.GroupResource{configMaps.GroupResource()}}, nil
	}
}

// patient makes the Controller expect heartbeats so rarely that no heartbeat is late during a test.
func patient(o *targets.Options) { o.Heartbeat = time.Hour }

func elsewhere(o *targets.Options) {
	o.Mode = func(*v1alpha1.SyncTarget) targets.Mode { return targets.None }
}

// installation returns the name of the installation for the target.
func (f *fleet) installation() string {
	f.t.Helper()
	system, err := f.up.client.Resource(namespaces).Get(f.t.Context(), "kube-system", metav1.GetOptions{})
	require.NoError(f.t, err)
	all, err := targets.Manifests(targets.Install{Target: target, Upstream: string(system.GetUID()), Kubeconfig: []byte("k"), Image: "i"})
	require.NoError(f.t, err)
	return all[0].GetName()
}

// there reports whether the cluster has an object. The namespace of a cluster-scoped object is empty.
func (f *fleet) there(gvr schema.GroupVersionResource, namespace, name string) bool {
	f.t.Helper()
	_, err := f.down.client.Resource(gvr).Namespace(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(f.t, err)
	}
	return err == nil
}

// agent runs an Agent, as the installed Deployment would, until the func that it returns is called or the test ends.
func (f *fleet) agent() (*targets.Agent, func()) {
	f.t.Helper()
	a, err := targets.NewAgent(f.up.api, f.down.api, syncer.Options{
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

// A Controller installs a syncer, restores deleted parts of it, and uninstalls it when the SyncTarget is deleted.
func TestPull(t *testing.T) {
	f := newFleet(t, pulling, patient)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Progressing")
	f.says("Ready Unknown Pending")
	name := f.installation()
	for _, gvr := range []schema.GroupVersionResource{namespaces, clusterRoles, clusterRoleBindings} {
		require.True(t, f.there(gvr, "", name), gvr.Resource)
	}
	require.True(t, f.there(secrets, name, "upstream"))
	require.Nil(t, f.controller.Syncer(target), "no Syncer runs in this process")

	apps := f.down.client.Resource(deployments).Namespace(name)
	run := func() {
		_, err := apps.Patch(t.Context(), "syncer", "application/merge-patch+json",
			[]byte(`{"status":{"availableReplicas":1,"readyReplicas":1,"replicas":1,"updatedReplicas":1,"observedGeneration":9}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
	run()
	f.says("Installed True Installed")

	require.NoError(t, apps.Delete(t.Context(), "syncer", metav1.DeleteOptions{}))
	f.eventually("the Deployment is there again", func() bool { return f.there(deployments, name, "syncer") })
	f.says("Installed False Progressing")
	run()
	f.says("Installed True Installed")
	require.NoError(t, f.down.client.Resource(clusterRoles).Delete(t.Context(), name, metav1.DeleteOptions{}))
	f.eventually("the rights are there again", func() bool { return f.there(clusterRoles, "", name) })

	agent, _ := f.agent()
	f.up.create(configMaps, a)
	f.eventually("the downstream object", func() bool { return f.down.get(configMaps, "a") != nil })
	f.says("Ready True Syncing")
	f.says("Installed True Installed")

	f.deleteTarget()
	f.targetIsGone()
	for _, gvr := range []schema.GroupVersionResource{namespaces, clusterRoles, clusterRoleBindings} {
		require.False(t, f.there(gvr, "", name), gvr.Resource)
	}
	require.Empty(t, f.up.get(configMaps, "a").GetFinalizers())
	require.NotNil(t, f.down.get(configMaps, "a"), "the downstream object stays")
	require.Nil(t, agent.Syncer(), "no syncer adds the finalizer again")
	f.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)

	// The same process serves another SyncTarget of the same name.
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Ready True Syncing")
	f.eventually("the change", func() bool { return field(f.down.get(configMaps, "a"), "data", "k") == "w" })
}

// If another client's object has the name of one of ours, the Controller reports that. It does not change the object,
// and does not delete it with the SyncTarget.
func TestPullForeign(t *testing.T) {
	f := newFleet(t, pulling)
	name := f.installation()
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name},
	}}
	foreign, err := f.down.client.Resource(clusterRoles).Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Foreign")
	f.deleteTarget()
	f.targetIsGone()
	now, err := f.down.client.Resource(clusterRoles).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, foreign, now)
	require.False(t, f.there(namespaces, "", name))
}

// A Controller cannot distinguish an unreachable cluster from one that was removed: a person confirms the removal
// by an annotation.
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

// A failed installation is reported. It does not prevent the deletion of the SyncTarget.
func TestPullWithoutInstall(t *testing.T) {
	f := newFleet(t, func(o *targets.Options) {
		o.Mode = func(*v1alpha1.SyncTarget) targets.Mode { return targets.Pull }
	})
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Refused")
	f.deleteTarget()
	f.targetIsGone()
}

// In mode None, a Controller reports whether the heartbeat of a syncer elsewhere stands still. It adds no finalizer to
// the SyncTarget and installs nothing.
func TestNone(t *testing.T) {
	f := newFleet(t, elsewhere)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Ready Unknown Pending")
	require.Nil(t, f.controller.Syncer(target))
	require.Empty(t, f.controller.Connected())
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

// Types that SetTypes records as incompatible are reported in TypesDefined and TypesCompatible. Other types are synced.
func TestTypesOfTargets(t *testing.T) {
	for name, change := range map[string]func(*targets.Options){"push": func(*targets.Options) {}, "none": elsewhere} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, change)
			f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
			if name == "none" {
				f.agent()
			}
			f.says("TypesCompatible True Compatible")
			require.False(t, slices.ContainsFunc(f.target().Status.Conditions, func(c metav1.Condition) bool { return c.Type == "TypesDefined" }))
			f.controller.SetTypes(target, nil, false)
			f.says("TypesDefined Unknown Pending")
			f.controller.SetTypes(target, []string{"things.example.org (Refused: no)"}, true)
			f.says("TypesDefined False Incompatible")
			f.says("TypesCompatible False Incompatible")
			require.Contains(t, asJSON(t, f.target().Status), "things.example.org (Refused: no)")
			f.up.create(configMaps, a)
			f.eventually("the downstream object", func() bool { return f.down.get(configMaps, "a") != nil })
			// A message that is too long for a condition is cut, and ends with the number of bytes that were left out.
			f.controller.SetTypes(target, []string{"long (" + strings.Repeat("ö", 40000) + ")"}, true)
			for _, kind := range []string{"TypesDefined", "TypesCompatible"} {
				f.eventually(kind+" has the number of bytes that were left out", func() bool {
					c := meta.FindStatusCondition(f.target().Status.Conditions, kind)
					return strings.HasPrefix(c.Message, "long (ö") && strings.HasSuffix(c.Message, "more bytes)") && len(c.Message) <= 4096
				})
			}
			f.controller.SetTypes(target, nil, true)
			f.says("TypesDefined True Compatible")
			f.says("TypesCompatible True Compatible")
		})
	}
}

// NewAgent returns an error for arguments that syncer.New rejects. Start of an Agent returns an error if both APIs
// reach the same cluster, or if it is called twice.
func TestNewAgent(t *testing.T) {
	up, down := newSide(t, "up", regiontest.Options{}), newSide(t, "down", regiontest.Options{})
	_, err := targets.NewAgent(up.api, down.api, syncer.Options{})
	require.ErrorContains(t, err, "Target")
	_, err = targets.NewAgent(nil, down.api, syncer.Options{Target: target})
	require.Error(t, err)

	same := newSide(t, "same", withTargets(t))
	_, err = same.client.Resource(syncTargets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": target},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	a, err := targets.NewAgent(same.api, same.api, syncer.Options{Target: target})
	require.NoError(t, err)
	require.ErrorContains(t, a.Start(t.Context()), "same cluster")
	require.ErrorContains(t, a.Start(t.Context()), "twice")
}

// A heartbeat does not make the Controller apply the manifests again.
func TestPullRests(t *testing.T) {
	f := newFleet(t, pulling, func(o *targets.Options) { o.Recheck = time.Hour })
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Progressing")
	f.agent()
	f.says("Ready True Syncing")
	f.eventually("all events of the Deployment are handled", func() bool {
		f.down.Reset()
		before := f.target().Status.LastSyncerHeartbeatTime
		f.eventually("two heartbeats", func() bool { return f.target().Status.LastSyncerHeartbeatTime.Sub(before.Time) >= 2*time.Second })
		return len(f.down.writes()) == 0
	})
}

// A deleted SyncTarget keeps its finalizer until a syncer that may still run has reported its end: before that, the
// syncer could add its own finalizer to released objects again.
func TestPullWaitsForTheAgent(t *testing.T) {
	f := newFleet(t, pulling, patient)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Progressing")
	_, err := f.up.client.Resource(syncTargets).Patch(t.Context(), target, types.MergePatchType,
		[]byte(`{"status":{"lastSyncerHeartbeatTime":"2026-01-01T00:00:00Z"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	f.eventually("the SyncTarget has the finalizer", func() bool { return len(f.target().Finalizers) > 0 })
	name := f.installation()
	f.deleteTarget()
	f.eventually("nothing is left in the cluster", func() bool { return !f.there(namespaces, "", name) })
	for _, look := range []string{"one", "two"} {
		f.down.Reset()
		f.patchTarget(`{"metadata":{"annotations":{"look":"` + look + `"}}}`)
		f.eventually("the SyncTarget is reconciled again", func() bool {
			return slices.ContainsFunc(f.down.Requests(), func(r regiontest.Request) bool { return r.Resource == "namespaces" && r.Name == name })
		})
	}
	require.NotEmpty(t, f.target().Finalizers)
	f.agent() // the Agent finds that its SyncTarget is being deleted, and reports that its Syncer has ended
	f.targetIsGone()
}

// When the SyncTarget is deleted, the finalizer is removed from the objects of all types in the Install, even of a
// type that a Syncer in this process would refuse.
func TestPullLetsGoWhatWasInstalled(t *testing.T) {
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	f := newFleet(t, pulling, func(o *targets.Options) {
		install := o.Install
		o.Configure = nil
		o.Install = func(ctx context.Context, target *v1alpha1.SyncTarget) (targets.Install, error) {
			in, err := install(ctx, target)
			in.Types = append(in.Types, roles.GroupResource())
			return in, err
		}
	})
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.says("Installed False Refused") // roles need a permit, which the Install lacks; an earlier release did not require it
	f.up.create(roles, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, finalizers: ["+v1alpha1.FinalizerPrefix+target+"]}}")
	f.deleteTarget()
	f.targetIsGone()
	require.Empty(t, f.up.get(roles, "a").GetFinalizers())
}
