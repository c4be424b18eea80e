// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const (
	merge = string(types.MergePatchType)
	apply = string(types.ApplyYAMLPatchType)
)

// A syncer writes the status and its own marks of an object that is placed in its cluster, and nothing else.
func TestWrites(t *testing.T) {
	const (
		mark      = `{"metadata":{"annotations":{"synced.syncer.atoll.dev/c1":"x"}}}`
		finalizer = `{"metadata":{"finalizers":["syncer.atoll.dev/c1"]}}`
	)
	for name, c := range map[string]struct {
		media, query, body string
		object             string // default: mine
		code               int
		text               string
	}{
		"its annotation":              {media: merge, body: mark, code: 200},
		"its finalizer":               {media: merge, body: finalizer, code: 200},
		"its finalizer, by apply":     {media: apply, query: "?fieldManager=c1&force=true", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine","finalizers":["syncer.atoll.dev/c1"]}}`, code: 200},
		"apply in YAML":               {media: apply, query: "?fieldManager=c1", body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, annotations: {synced.syncer.atoll.dev/c1: x}}", code: 200},
		"nothing":                     {media: merge, body: `{}`, code: 200},
		"the content":                 {media: merge, body: `{"data":{"k":"stolen"}}`, code: 403, text: "does not write data.k"},
		"all content":                 {media: merge, body: `{"data":null}`, code: 403, text: "does not write data"},
		"the content, by a dry run":   {media: merge, query: "?dryRun=All", body: `{"data":{"k":"stolen"}}`, code: 403, text: "does not write data.k"},
		"the content by omission":     {media: apply, query: "?fieldManager=owner&force=true", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine"}}`, code: 403, text: "does not write data"},
		"a label":                     {media: merge, body: `{"metadata":{"labels":{"state.workload.kcp.io/c2":"Sync"}}}`, code: 403, text: "does not write metadata.labels.state.workload.kcp.io/c2"},
		"its label":                   {media: merge, body: `{"metadata":{"labels":null}}`, code: 403, text: "does not write metadata.labels"},
		"another's annotation":        {media: merge, body: `{"metadata":{"annotations":{"synced.syncer.atoll.dev/c2":"x"}}}`, code: 403, text: "metadata.annotations.synced.syncer.atoll.dev/c2"},
		"another's finalizer":         {media: merge, body: `{"metadata":{"finalizers":["syncer.atoll.dev/c1","syncer.atoll.dev/c2"]}}`, code: 403, text: "metadata.finalizers"},
		"an owner":                    {media: merge, body: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"x","uid":"x"}]}}`, code: 403, text: "metadata.ownerReferences"},
		"an older version":            {media: merge, body: `{"metadata":{"resourceVersion":"1","annotations":{"synced.syncer.atoll.dev/c1":"x"}}}`, code: 409, text: "has another resourceVersion now"},
		"another object of the name":  {media: merge, body: `{"metadata":{"uid":"x"}}`, code: 409, text: "has another uid now"},
		"an object of c2":             {media: merge, object: "other", body: mark, code: 404, text: "not found"},
		"an object of no cluster":     {media: merge, object: "none", body: mark, code: 404, text: "not found"},
		"an object that is not there": {media: apply, query: "?fieldManager=c1", object: "new", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new","labels":{"workloads.kcp.io/cluster":"c1"}}}`, code: 404, text: "not found"},
		"a JSON patch":                {media: string(types.JSONPatchType), body: `[]`, code: 415, text: "want application/apply-patch+yaml or application/merge-patch+json"},
		"a strategic merge patch":     {media: string(types.StrategicMergePatchType), body: `{}`, code: 415},
		"no object":                   {media: merge, body: `[]`, code: 400, text: "no object"},
		"no metadata":                 {media: merge, body: `{"metadata":[]}`, code: 400, text: "metadata is no object"},
		"no JSON":                     {media: merge, body: `{`, code: 400, text: "neither JSON nor YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{})
			for object, labels := range map[string]map[string]any{"mine": at("c1"), "other": at("c2"), "none": nil} {
				s.put(configMaps, "ConfigMap", object, labels)
				_, err := s.own().Resource(configMaps).Namespace("default").Patch(t.Context(), object, types.ApplyPatchType,
					fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"k":"v"}}`, object), metav1.PatchOptions{FieldManager: "owner"})
				require.NoError(t, err)
			}
			if c.object == "" {
				c.object = "mine"
			}
			before, err := s.own().Resource(configMaps).Namespace("default").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			code, body := s.ask(http.MethodPatch, "/synctargets/c1/regions/eu.loodse/api/v1/namespaces/default/configmaps/"+c.object+c.query, c.media, c.body)
			require.Equal(t, c.code, code, body)
			require.Contains(t, body, c.text)
			after, err := s.own().Resource(configMaps).Namespace("default").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			if c.code != http.StatusOK {
				require.Equal(t, before.Items, after.Items)
			}
			for i := range after.Items {
				require.Equal(t, map[string]any{"k": "v"}, after.Items[i].Object["data"])
			}
		})
	}
}

// The status of the own SyncTarget can be written, and that of another one cannot.
func TestWritesOfSyncTargets(t *testing.T) {
	s := newScene(t, Options{})
	const base = "/synctargets/c1/regions/eu.loodse/apis/workload.kcp.io/v1alpha1/synctargets/"
	const status = `{"status":{"lastSyncerHeartbeatTime":"2026-01-01T00:00:00Z"}}`
	for path, want := range map[string]int{"c1/status": 200, "c1": 403, "c2/status": 403, "c2": 403} {
		code, body := s.ask(http.MethodPatch, base+path, merge, status)
		require.Equal(t, want, code, "%s: %s", path, body)
	}
}

// Options.Fields lets a syncer write more.
func TestFields(t *testing.T) {
	s := newScene(t, Options{Fields: func(gr schema.GroupResource) []string {
		if gr == configMaps.GroupResource() {
			return []string{"data.k"}
		}
		return nil
	}})
	s.put(configMaps, "ConfigMap", "mine", at("c1"))
	path := "/synctargets/c1/regions/eu.loodse/api/v1/namespaces/default/configmaps/mine"
	code, body := s.ask(http.MethodPatch, path, merge, `{"data":{"k":"v"}}`)
	require.Equal(t, http.StatusOK, code, body)
	code, _ = s.ask(http.MethodPatch, path, merge, `{"data":{"j":"v"}}`)
	require.Equal(t, http.StatusForbidden, code)
}

// An update is judged as a patch is.
func TestUpdate(t *testing.T) {
	s := newScene(t, Options{})
	s.put(configMaps, "ConfigMap", "mine", at("c1"))
	mine := s.syncer().Resource(configMaps).Namespace("default")
	o, err := mine.Get(t.Context(), "mine", metav1.GetOptions{})
	require.NoError(t, err)
	o.SetFinalizers([]string{v1alpha1.FinalizerPrefix + "c1"})
	o, err = mine.Update(t.Context(), o, metav1.UpdateOptions{})
	require.NoError(t, err)
	o.SetLabels(map[string]string{v1alpha1.ClusterLabel: "c2"})
	_, err = mine.Update(t.Context(), o, metav1.UpdateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	o.SetLabels(map[string]string{v1alpha1.ClusterLabel: "c1"})
	o.SetName("other")
	code, body := s.ask(http.MethodPut, "/synctargets/c1/regions/eu.loodse/api/v1/namespaces/default/configmaps/mine", "application/json",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}`)
	require.Equal(t, http.StatusBadRequest, code, body)
}

// An object is moved to another cluster after its write was judged. The write is not applied.
func TestObjectMovesAfterTheJudgement(t *testing.T) {
	s := newScene(t, Options{})
	s.put(configMaps, "ConfigMap", "mine", at("c1"))
	var patches atomic.Int32
	move := func(r regiontest.Request) {
		if r.Verb == "patch" && r.User.Name == "atoll:cluster:c1" && patches.Add(1) == 2 { // the write that follows the dry run
			_, err := s.own().Resource(configMaps).Namespace("default").Patch(t.Context(), "mine", types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"workloads.kcp.io/cluster":"c2"}}}`), metav1.PatchOptions{})
			require.NoError(t, err)
		}
	}
	s.reached.Store(&move)
	code, body := s.ask(http.MethodPatch, "/synctargets/c1/regions/eu.loodse/api/v1/namespaces/default/configmaps/mine", merge,
		`{"metadata":{"annotations":{"synced.syncer.atoll.dev/c1":"x"}}}`)
	require.Equal(t, http.StatusNotFound, code, body)
	o, err := s.own().Resource(configMaps).Namespace("default").Get(t.Context(), "mine", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, o.GetAnnotations())
}

// An object changes after its write was judged, and stays in the cluster. The write is judged again, and applied.
func TestObjectChangesAfterTheJudgement(t *testing.T) {
	s := newScene(t, Options{})
	s.put(configMaps, "ConfigMap", "mine", at("c1"))
	var patches atomic.Int32
	change := func(r regiontest.Request) {
		if r.Verb == "patch" && r.User.Name == "atoll:cluster:c1" && patches.Add(1) == 2 {
			_, err := s.own().Resource(configMaps).Namespace("default").Patch(t.Context(), "mine", types.MergePatchType, []byte(`{"data":{"k":"new"}}`), metav1.PatchOptions{})
			require.NoError(t, err)
		}
	}
	s.reached.Store(&change)
	code, body := s.ask(http.MethodPatch, "/synctargets/c1/regions/eu.loodse/api/v1/namespaces/default/configmaps/mine", merge,
		`{"metadata":{"annotations":{"synced.syncer.atoll.dev/c1":"x"}}}`)
	require.Equal(t, http.StatusOK, code, body)
	o, err := s.own().Resource(configMaps).Namespace("default").Get(t.Context(), "mine", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"k": "new"}, o.Object["data"])
	require.Equal(t, "x", o.GetAnnotations()["synced.syncer.atoll.dev/c1"])
}

// A dry run of a permitted write writes nothing.
func TestDryRun(t *testing.T) {
	s := newScene(t, Options{})
	before := s.put(configMaps, "ConfigMap", "mine", at("c1"))
	code, body := s.ask(http.MethodPatch, "/synctargets/c1/regions/eu.loodse/api/v1/namespaces/default/configmaps/mine?dryRun=All", merge,
		`{"metadata":{"annotations":{"synced.syncer.atoll.dev/c1":"x"}}}`)
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, `"synced.syncer.atoll.dev/c1":"x"`)
	after, err := s.own().Resource(configMaps).Namespace("default").Get(t.Context(), "mine", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, before, after)
}
