// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	syncTargets = v1alpha1.GroupVersion.WithResource("synctargets")
	namespaces  = gvr("", "v1", "namespaces")

	// few lists the synced types of these tests: a type without a status and a type with one.
	few = []schema.GroupResource{configMaps.GroupResource(), deployments.GroupResource()}
)

// fleet is an upstream with SyncTargets, a downstream, and a targets.Controller with only the
// rights of rights.Sync.
type fleet struct {
	t        *testing.T
	up, down *side
	targets  *targets.Controller
}

func newFleet(t *testing.T, mode targets.Mode, install func(context.Context, *v1alpha1.SyncTarget) (targets.Install, error)) *fleet {
	t.Helper()
	up, down := planetest.Shared(t, 1)[0], planetest.SharedPods(t, 1)[0]
	namespace := planetest.Namespace(t, up) // the syncer creates it downstream
	f := &fleet{t: t, up: newSide(t, up, namespace), down: newSide(t, down, namespace)}
	_, err := config.InstallCRDs(t.Context(), f.up.api, config.InstallOptions{})
	require.NoError(t, err)
	credentials, err := region.ParseKubeconfig(runAs(t, up, "targets", rights.Syncing{Mode: mode, Types: few, Namespace: namespace}), region.Trust{})
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{Name: "upstream", Credentials: credentials}, region.ConnOptions{})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	f.targets, err = targets.New(conn, targets.Options{
		Mode: func(*v1alpha1.SyncTarget) targets.Mode { return mode }, Install: install, Heartbeat: 2 * time.Second, Recheck: time.Second,
		Configure: func(_ *v1alpha1.SyncTarget, opts *syncer.Options) {
			opts.Discovery = 2 * time.Second
			opts.Types = func(gr schema.GroupResource) bool { return slices.Contains(few, gr) }
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { _ = f.targets.Start(ctx) })
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
	return f
}

// runAs returns a kubeconfig with the roles that rights.Sync returns for a part. Roles of one
// namespace are granted cluster-wide.
func runAs(t *testing.T, p *plane.Plane, part string, s rights.Syncing) []byte {
	t.Helper()
	cluster, namespaced, ok := rights.Sync(part, s)
	require.True(t, ok)
	for _, r := range namespaced {
		role := &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, Rules: r.Rules}
		role.Name = r.Name
		cluster = append(cluster, role)
	}
	var text bytes.Buffer
	for _, r := range cluster {
		data, err := yaml.Marshal(r)
		require.NoError(t, err)
		text.WriteString("---\n")
		text.Write(data)
	}
	kubeconfig, err := p.RunAs(t.Context(), text.Bytes())
	require.NoError(t, err)
	return kubeconfig
}

func (f *fleet) register(name, spec string) {
	f.t.Helper()
	planetest.Apply(f.t, f.up.plane, fmt.Sprintf("{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: %s}, spec: %s}", name, spec))
}

// secret stores a kubeconfig of the downstream in a Secret.
func (f *fleet) secret(name string, kubeconfig []byte) {
	f.t.Helper()
	planetest.Apply(f.t, f.up.plane, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, stringData: {kubeconfig: %q}}", name, f.up.namespace, kubeconfig))
}

// create creates an object for a SyncTarget.
func (f *fleet) create(target string, gvr schema.GroupVersionResource, manifest string) {
	f.t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(f.t, yaml.Unmarshal([]byte(manifest), &obj.Object))
	obj.SetLabels(map[string]string{v1alpha1.ClusterLabel: target})
	_, err := f.up.api.Dynamic().Resource(gvr).Namespace(f.up.namespace).Create(f.t.Context(), obj, metav1.CreateOptions{})
	require.NoError(f.t, err)
}

// says waits for a condition of a SyncTarget.
func (f *fleet) says(target, condition, status, reason string) {
	f.t.Helper()
	planetest.Eventually(f.t, long, fmt.Sprintf("%s of SyncTarget %s is %s %s", condition, target, status, reason), func(ctx context.Context) error {
		obj, err := f.up.api.Dynamic().Resource(syncTargets).Get(ctx, target, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == condition && c["status"] == status && c["reason"] == reason {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", conditions)
	})
}

func (f *fleet) delete(target string) {
	f.t.Helper()
	require.NoError(f.t, f.up.api.Dynamic().Resource(syncTargets).Delete(f.t.Context(), target, metav1.DeleteOptions{}))
}

// gone waits until the object does not exist. The namespace may be empty.
func gone(t *testing.T, s *side, gvr schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	planetest.Eventually(t, long, fmt.Sprintf("no %s %s in %s", gvr.Resource, name, s.plane.Name()), func(ctx context.Context) error {
		obj, err := s.api.Dynamic().Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it is there: finalizers %v, status %v", obj.GetFinalizers(), obj.Object["status"])
		}
		return err
	})
}

const (
	aConfigMap  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {k: v}}"
	aDeployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, image: i}]}}}}"
)
