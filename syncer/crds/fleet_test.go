// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/crds"
	"github.com/atoll-dev/atoll/syncer/targets"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var syncTargets = runtimeschema.GroupVersionResource{Group: "workload.kcp.io", Version: "v1alpha1", Resource: "synctargets"}

// conditionOf returns a condition of a SyncTarget as "status reason message", or "".
func (w *world) conditionOf(target, kind string) string {
	w.t.Helper()
	obj, err := w.apis[crds.Upstream].Dynamic().Resource(syncTargets).Get(w.t.Context(), target, metav1.GetOptions{})
	require.NoError(w.t, err)
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == kind {
			return fmt.Sprintf("%v %v %v", c["status"], c["reason"], c["message"])
		}
	}
	return ""
}

func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	late := time.After(time.Minute)
	for !holds() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late:
			require.Fail(w.t, "not within a minute: "+what)
		}
	}
}

// If two clusters define a type with different scopes, the conditions of both SyncTargets name the type. Another type
// is synced in both clusters.
func TestOneBadTypeStopsNoOther(t *testing.T) {
	w := newWorld(t, crds.Policy{{Group: "example.com", Resource: "*", Direction: crds.Both}}, "a", "b", "upstream-too")
	crd, err := config.CRD("synctargets.workload.kcp.io")
	require.NoError(t, err)
	require.NoError(t, w.servers[crds.Upstream].AddCRD(crd))
	w.define("a", "goods", "{type: integer}")
	w.define("a", "words", "{type: string}")
	global := definition(t, "words", "{type: string}")
	global.Spec.Scope = apiextensionsv1.ClusterScoped
	require.NoError(t, w.servers["b"].AddCRD(global))

	clusters, err := targets.New(w.apis[crds.Upstream], targets.Options{
		Heartbeat: 100 * time.Millisecond, Recheck: 100 * time.Millisecond,
		Configure: func(_ *v1alpha1.SyncTarget, opts *syncer.Options) {
			opts.Discovery = 100 * time.Millisecond
			opts.Types = func(gr runtimeschema.GroupResource) bool { return gr.Group == "example.com" } // other groups do not matter here
		},
	})
	require.NoError(t, err)
	fleet, err := crds.NewFleet(w.apis[crds.Upstream], clusters, crds.Options{Policy: w.policy, Interval: 100 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = clusters.Start(ctx) })
	wg.Go(func() { _ = fleet.Start(ctx) })
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
	register := func(name, server string) {
		kubeconfig, err := w.servers[server].Listen(t.Context())
		require.NoError(t, err)
		_, err = w.apis[crds.Upstream].Dynamic().Resource(syncTargets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"kubeconfig": string(kubeconfig)},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	register("a", "a")
	w.eventually("a is compatible", func() bool { return w.conditionOf("a", "TypesDefined") == "True Compatible " })
	register("b", "b")
	for _, name := range []string{"a", "b"} {
		for _, kind := range []string{"TypesDefined", "TypesCompatible"} {
			// While the type goods is new to the syncer, the syncer may report it as incompatible.
			w.eventually(name+" names the incompatible type and no other", func() bool {
				got := w.conditionOf(name, kind)
				return strings.HasPrefix(got, "False Incompatible ") && strings.Contains(got, "words.example.com (Incompatible: ") && !strings.Contains(got, "goods")
			})
		}
		w.eventually(name+" is ready", func() bool { return strings.HasPrefix(w.conditionOf(name, "Ready"), "True ") })
	}
	// Goods were pulled from a and pushed to b, and their objects are synced to both clusters.
	for _, name := range []string{"a", "b"} {
		good := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Good", "spec": map[string]any{"size": int64(1)},
			"metadata": map[string]any{"name": "for-" + name, "namespace": "default", "labels": map[string]any{v1alpha1.ClusterLabel: name}},
		}}
		_, err := w.objects(crds.Upstream, "goods").Create(t.Context(), good, metav1.CreateOptions{})
		require.NoError(t, err)
		w.eventually("a good in "+name, func() bool {
			_, err := w.apis[name].Dynamic().Resource(runtimeschema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "goods"}).
				Namespace("default").Get(t.Context(), "for-"+name, metav1.GetOptions{})
			return err == nil
		})
	}
	// A SyncTarget named "upstream" does not affect the other SyncTargets.
	register(crds.Upstream, "upstream-too")
	w.eventually("the condition reports the reserved name", func() bool { return strings.Contains(w.conditionOf(crds.Upstream, "TypesDefined"), "is reserved") })
	w.drop("b", "words")
	for _, name := range []string{"a", "b"} {
		w.eventually(name+" is compatible", func() bool { return w.conditionOf(name, "TypesCompatible") == "True Compatible " })
	}
}

func TestNewFleet(t *testing.T) {
	w := newWorld(t, nil)
	_, err := crds.NewFleet(w.apis[crds.Upstream], nil, crds.Options{})
	require.ErrorContains(t, err, "targets is nil")
	clusters, err := targets.New(w.apis[crds.Upstream], targets.Options{})
	require.NoError(t, err)
	_, err = crds.NewFleet(nil, clusters, crds.Options{})
	require.ErrorContains(t, err, "up is nil")
}

// If a cluster connects during a pass and does not answer in the next one, the Fleet reports its types as unknown.
func TestFleetSpeaksOfWhomItHasAsked(t *testing.T) {
	w := newWorld(t, crds.Policy{{Group: "example.com", Resource: "*", Direction: crds.Both}}, "a", "b")
	crd, err := config.CRD("synctargets.workload.kcp.io")
	require.NoError(t, err)
	require.NoError(t, w.servers[crds.Upstream].AddCRD(crd))
	w.define("a", "goods", "{type: integer}")
	clusters, err := targets.New(w.apis[crds.Upstream], targets.Options{Heartbeat: 100 * time.Millisecond, Recheck: 100 * time.Millisecond})
	require.NoError(t, err)
	register := func(name string) {
		kubeconfig, err := w.servers[name].Listen(t.Context())
		require.NoError(t, err)
		_, err = w.apis[crds.Upstream].Dynamic().Resource(syncTargets).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"kubeconfig": string(kubeconfig)},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	asked, come := make(chan struct{}), make(chan struct{})
	observer := &crds.Observer{Changed: func(context.Context, crds.State) {
		select {
		case <-asked:
		default:
			close(asked)
			<-come
		}
	}}
	fleet, err := crds.NewFleet(w.apis[crds.Upstream], clusters, crds.Options{Policy: w.policy, Interval: 100 * time.Millisecond, Observer: observer})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = clusters.Start(ctx) })
	wg.Go(func() { _ = fleet.Start(ctx) })
	t.Cleanup(wg.Wait)
	t.Cleanup(cancel)
	stay := sync.OnceFunc(func() { close(come) })
	t.Cleanup(stay)
	register("a")
	<-asked
	w.servers["b"].Partition(true)
	register("b")
	w.eventually("b is reached", func() bool { return clusters.Connected()["b"] != nil })
	stay()
	w.eventually("of b nothing is known", func() bool { return w.conditionOf("b", "TypesDefined") == "Unknown Pending " })
}
