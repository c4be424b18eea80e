// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"encoding/base64"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// fleet is an upstream with SyncTargets, and Targets that run Syncers for them. It uses real connections and real time.
type fleet struct {
	*pair
	targets *syncer.Targets
	stop    func()
}

func newFleet(t *testing.T, change ...func(*syncer.TargetsOptions)) *fleet {
	t.Helper()
	f := &fleet{pair: &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}}
	f.start(t, change...)
	return f
}

func (f *fleet) start(t *testing.T, change ...func(*syncer.TargetsOptions)) {
	t.Helper()
	opts := syncer.TargetsOptions{
		Heartbeat: 100 * time.Millisecond, Recheck: 100 * time.Millisecond, Trust: region.Trust{Insecure: true},
		Configure: func(_ *v1alpha1.SyncTarget, opts *syncer.Options) {
			opts.Discovery = 100 * time.Millisecond
			opts.Types = func(gr schema.GroupResource) bool { return gr == configMaps.GroupResource() }
		},
	}
	for _, c := range change {
		c(&opts)
	}
	targets, err := syncer.NewTargets(f.up.api, opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- targets.Start(ctx) }()
	f.targets = targets
	f.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(f.stop)
}

// kubeconfig returns a kubeconfig of the downstream.
func (f *fleet) kubeconfig() string {
	f.t.Helper()
	data, err := f.down.Listen(f.t.Context())
	require.NoError(f.t, err)
	return string(data)
}

func (f *fleet) register(name string, spec map[string]any) {
	f.t.Helper()
	_, err := f.up.client.Resource(syncTargets).Create(f.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": name}, "spec": spec,
	}}, metav1.CreateOptions{})
	require.NoError(f.t, err)
}

func (f *fleet) secret(kubeconfig string) {
	f.t.Helper()
	secrets := f.up.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("default")
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "k"},
		"data": map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig))},
	}}
	_, err := secrets.Apply(f.t.Context(), "k", obj, metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(f.t, err)
}

func (f *fleet) eventually(what string, holds func() bool) {
	f.t.Helper()
	late := time.After(time.Minute)
	for !holds() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late:
			require.Fail(f.t, "not within a minute: "+what)
		}
	}
}

func (f *fleet) says(condition string) {
	f.t.Helper()
	f.eventually(condition, func() bool {
		for _, c := range f.conditions() {
			if c == condition {
				return true
			}
		}
		return false
	})
}

// The kubeconfig is in the SyncTarget, as in the demonstration. When the SyncTarget is deleted, its objects lose our
// finalizer, and the downstream objects stay.
func TestTargetIsServedAndLetGo(t *testing.T) {
	f := newFleet(t)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.up.create(configMaps, a)
	f.eventually("the downstream object", func() bool { return f.down.get(configMaps, "a") != nil })
	f.says("Ready True Syncing")
	require.NotNil(t, f.targets.Syncer(target))

	require.NoError(t, f.up.client.Resource(syncTargets).Delete(t.Context(), target, metav1.DeleteOptions{}))
	f.eventually("the SyncTarget is gone", func() bool {
		_, err := f.up.client.Resource(syncTargets).Get(t.Context(), target, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	require.Empty(t, f.up.get(configMaps, "a").GetFinalizers())
	require.NotNil(t, f.down.get(configMaps, "a"))
	require.Nil(t, f.targets.Syncer(target))
	f.up.delete(configMaps, "a")
	require.Nil(t, f.up.get(configMaps, "a"))
}

// The kubeconfig is in a Secret, which is the safe form. An error in it is reported. A later change of it does not restart
// the Syncer.
func TestTargetOfASecret(t *testing.T) {
	f := newFleet(t)
	f.register(target, map[string]any{"kubeconfigSecret": map[string]any{"name": "k", "namespace": "default"}})
	f.says("Ready False KubeconfigInvalid")
	f.secret("nonsense")
	f.says("Ready False KubeconfigInvalid")
	f.secret(f.kubeconfig())
	f.up.create(configMaps, a)
	f.eventually("the downstream object", func() bool { return f.down.get(configMaps, "a") != nil })
	f.says("Ready True Syncing")
	before := f.targets.Syncer(target)
	f.secret(f.kubeconfig())
	f.secret("nonsense") // is not used
	f.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)
	f.eventually("the change", func() bool { return field(f.down.get(configMaps, "a"), "data", "k") == "w" })
	require.Same(t, before, f.targets.Syncer(target))
}

// A kubeconfig is rejected if it has fields that TargetsOptions.Trust does not allow.
func TestTargetsTrust(t *testing.T) {
	f := newFleet(t)
	kubeconfig := f.kubeconfig()
	f.register(target, map[string]any{"kubeconfig": regexp.MustCompile("certificate-authority-data: .*").ReplaceAllString(kubeconfig, "insecure-skip-tls-verify: true")})
	f.says("Ready True Syncing")
	f.register("other", map[string]any{"kubeconfig": regexp.MustCompile("client-key-data: .*").ReplaceAllString(kubeconfig, "client-key: /etc/passwd")})
	f.eventually("it is refused", func() bool {
		obj, err := f.up.client.Resource(syncTargets).Get(t.Context(), "other", metav1.GetOptions{})
		require.NoError(t, err)
		return strings.Contains(asJSON(t, field(obj, "status")), "users[0].user.client-key")
	})
	require.Nil(t, f.targets.Syncer("other"))
}

// A SyncTarget without a kubeconfig is left to a Syncer elsewhere.
func TestTargetWithoutKubeconfig(t *testing.T) {
	f := newFleet(t)
	f.register(target, map[string]any{})
	f.up.create(configMaps, a)
	f.register("served", map[string]any{"kubeconfig": f.kubeconfig()})
	f.eventually("the other is served", func() bool { return f.targets.Syncer("served") != nil })
	require.Nil(t, f.targets.Syncer(target))
	require.Empty(t, f.target().Finalizers)
	require.Empty(t, f.target().Status.Conditions)
	f.patchTarget(`{"spec":{"kubeconfig":` + asJSON(t, f.kubeconfig()) + `}}`)
	f.eventually("the downstream object", func() bool { return f.down.get(configMaps, "a") != nil })
}

// A restart of the process changes nothing.
func TestTargetsRestart(t *testing.T) {
	f := newFleet(t)
	f.register(target, map[string]any{"kubeconfig": f.kubeconfig()})
	f.up.create(configMaps, a)
	f.eventually("the downstream object", func() bool { return f.down.get(configMaps, "a") != nil })
	f.stop()
	require.NotNil(t, f.down.get(configMaps, "a"))
	require.NotEmpty(t, f.up.get(configMaps, "a").GetFinalizers())
	f.down.Reset()
	f.start(t)
	f.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)
	f.eventually("the change", func() bool { return field(f.down.get(configMaps, "a"), "data", "k") == "w" })
	require.Equal(t, []string{"patch configmaps a"}, f.down.writes())
}

func (f *fleet) patchTarget(patch string) {
	f.t.Helper()
	_, err := f.up.client.Resource(syncTargets).Patch(f.t.Context(), target, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(f.t, err)
}
