// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/syncer"
)

var tools = gvr("example.org", "v1", "tools")

const (
	settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {k: %s}}"
	// toolType is a CRD. Its placeholder is for the fields of spec in the schema.
	toolType = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: tools.example.org}, spec: {
  group: example.org, scope: Namespaced, names: {plural: tools, kind: Tool}, versions: [{name: v1, served: true, storage: true,
  schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}}]}}`
)

func only(resources ...schema.GroupVersionResource) syncer.TypeFilter {
	return func(gr schema.GroupResource) bool {
		return slices.ContainsFunc(resources, func(r schema.GroupVersionResource) bool { return r.GroupResource() == gr })
	}
}

// newPlainWorld returns a world with the upstream up and a downstream without Pods.
func newPlainWorld(t *testing.T, up *plane.Plane, opts syncer.Options) *world {
	t.Helper()
	namespace := planetest.Namespace(t, up)
	w := &world{up: newSide(t, up, namespace), down: newSide(t, planetest.Shared(t, 2)[1], namespace)}
	w.start(t, opts)
	return w
}

// problem waits until the syncer reports an object of a type with a reason.
func (w *world) problem(t *testing.T, of schema.GroupVersionResource, name string, reason syncer.Reason) (message string) {
	t.Helper()
	planetest.Eventually(t, long, fmt.Sprintf("%s %s is reported as %s", of.Resource, name, reason), func(context.Context) error {
		for _, s := range w.Status().Types {
			for _, p := range s.Problems {
				if s.Resource.GroupResource() == of.GroupResource() && p.Object.Name == name && p.Reason == reason {
					message = p.Message
					return nil
				}
			}
		}
		return fmt.Errorf("%+v", w.Status())
	})
	return message
}

func (s *side) uid(t *testing.T, of schema.GroupVersionResource, name string) string {
	t.Helper()
	obj, err := s.get(t.Context(), of, name)
	require.NoError(t, err)
	return string(obj.GetUID())
}

// TestUpstreamInTrouble freezes the API server of an upstream, and then restores the upstream from
// a backup.
func TestUpstreamInTrouble(t *testing.T) {
	up := planetest.New(t, plane.Options{Name: "up"})
	t.Run("frozen", func(t *testing.T) { frozen(t, up) })
	t.Run("restored", func(t *testing.T) { restored(t, up) })
}

// After a restore of the upstream, downstream objects newer than the backup are not deleted. An
// upstream object that is created again takes over its downstream object; Release deletes the
// other objects.
func restored(t *testing.T, up *plane.Plane) {
	t.Helper()
	w := newPlainWorld(t, up, syncer.Options{Types: only(configMaps)})
	w.up.create(configMaps, fmt.Sprintf(settings, "before", "v"))
	w.down.has(configMaps, "before", map[string]string{"data.k": "v"})
	require.NoError(t, w.up.plane.Save(t.Context()))
	for _, name := range []string{"again", "lost"} {
		w.up.create(configMaps, fmt.Sprintf(settings, name, "v"))
		w.down.has(configMaps, name, map[string]string{"data.k": "v"})
	}
	again := w.down.uid(t, configMaps, "again")
	require.NoError(t, w.up.plane.Restore(t.Context()))

	require.Contains(t, w.problem(t, configMaps, "lost", syncer.ReasonOriginGone), "restored from a backup")
	w.problem(t, configMaps, "again", syncer.ReasonOriginGone)
	w.down.has(configMaps, "lost", map[string]string{"data.k": "v"})
	w.up.create(configMaps, fmt.Sprintf(settings, "again", "w"))
	w.down.has(configMaps, "again", map[string]string{"data.k": "w"})
	require.Equal(t, again, w.down.uid(t, configMaps, "again"))
	w.up.patch(configMaps, "before", `{"data":{"k":"w"}}`)
	w.down.has(configMaps, "before", map[string]string{"data.k": "w"})

	require.Equal(t, 1, w.Release())
	w.down.lacks(configMaps, "lost")
	for _, name := range []string{"before", "again"} {
		w.up.delete(configMaps, name)
		w.down.lacks(configMaps, name)
		w.up.lacks(configMaps, name)
	}
}

// A syncer whose upstream is frozen stops writing downstream when its lease expires, and resumes
// with the next lease.
func frozen(t *testing.T, up *plane.Plane) {
	t.Helper()
	w := newPlainWorld(t, up, syncer.Options{Types: only(configMaps), Heartbeat: time.Second, Lease: 3 * time.Second})
	w.up.create(configMaps, fmt.Sprintf(settings, "a", "v"))
	w.down.has(configMaps, "a", map[string]string{"data.k": "v"})
	require.NoError(t, w.up.plane.Pause(t.Context()))
	resumed := false
	t.Cleanup(func() {
		if !resumed {
			require.NoError(t, w.up.plane.Resume(context.WithoutCancel(t.Context())))
		}
	})
	planetest.Eventually(t, long, "the lease is over", func(context.Context) error {
		if w.Status().Stale.IsZero() {
			return errors.New("it is not stale")
		}
		return nil
	})
	w.down.patch(configMaps, "a", `{"data":{"k":"theirs"}}`)
	w.down.has(configMaps, "a", map[string]string{"data.k": "theirs"})
	require.NoError(t, w.up.plane.Resume(t.Context()))
	resumed = true
	w.down.has(configMaps, "a", map[string]string{"data.k": "v"})
	require.Zero(t, w.Status().Stale)
}

// A field that the downstream schema lacks, and a limit that only the downstream schema has, are
// reported, also while no object uses them.
func TestSchemasThatDiffer(t *testing.T) {
	w := newPlainWorld(t, planetest.Shared(t, 2)[0], syncer.Options{Types: only(tools)})
	planetest.Apply(t, w.up.plane, fmt.Sprintf(toolType, "size: {type: integer}, color: {type: string}"))
	planetest.Apply(t, w.down.plane, fmt.Sprintf(toolType, "size: {type: integer, maximum: 3}"))
	t.Cleanup(func() { removeType(t, w.down, "tools.example.org") })
	w.up.create(tools, "{apiVersion: example.org/v1, kind: Tool, metadata: {name: a}, spec: {size: 1}}")
	w.down.has(tools, "a", map[string]string{"spec.size": "1"})
	planetest.Eventually(t, long, "the losses are named", func(context.Context) error {
		for _, s := range w.Status().Types {
			all := strings.Join(s.Losses, "\n")
			if s.Resource.Resource == "tools" && strings.Contains(all, "color") && strings.Contains(all, "maximum") {
				return nil
			}
		}
		return fmt.Errorf("%+v", w.Status().Types)
	})
	w.up.patch(tools, "a", `{"spec":{"color":"red"}}`)
	w.problem(t, tools, "a", syncer.ReasonRefused)
	planetest.Apply(t, w.down.plane, fmt.Sprintf(toolType, "size: {type: integer}, color: {type: string}"))
	planetest.Eventually(t, long, "there are none", func(context.Context) error {
		for _, s := range w.Status().Types {
			if len(s.Losses) > 0 {
				return fmt.Errorf("%v", s.Losses)
			}
		}
		return nil
	})
	w.up.patch(tools, "a", `{"spec":{"size":5}}`)
	w.down.has(tools, "a", map[string]string{"spec.size": "5", "spec.color": "red"})
}

func removeType(t *testing.T, s *side, name string) {
	t.Helper()
	err := s.api.Dynamic().Resource(gvr("apiextensions.k8s.io", "v1", "customresourcedefinitions")).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	require.NoError(t, err)
}

// The syncer reports an object whose type is not synced, and names the option that would sync the
// type.
func TestUnsyncedTypeIsNamed(t *testing.T) {
	everything := func(schema.GroupResource) bool { return true }
	w := newPlainWorld(t, planetest.Shared(t, 2)[0], syncer.Options{Types: only(configMaps), Report: everything, Conditions: true})
	w.up.create(gvr("", "v1", "secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: a}}")
	w.restart(t, syncer.Options{Types: only(configMaps), Report: everything, Conditions: true}) // the syncer searches for objects only at its start
	require.Contains(t, w.problem(t, gvr("", "v1", "secrets"), "a", syncer.ReasonExcluded), "Options.Types")
}

func (w *world) restart(t *testing.T, opts syncer.Options) {
	t.Helper()
	w.stop()
	w.start(t, opts)
}

// Two syncers of the same SyncTarget detect each other.
func TestTwoSyncers(t *testing.T) {
	w := newPlainWorld(t, planetest.Shared(t, 2)[0], syncer.Options{Types: only(configMaps)})
	w.up.create(configMaps, fmt.Sprintf(settings, "a", "v"))
	w.down.has(configMaps, "a", map[string]string{"data.k": "v"})
	other := &world{up: w.up, down: w.down}
	other.start(t, syncer.Options{Types: only(configMaps), Transform: []syncer.Transformer{func(obj *unstructured.Unstructured) error {
		return unstructured.SetNestedField(obj.Object, "other", "data", "k")
	}}})
	planetest.Eventually(t, long, "both notice the other", func(context.Context) error {
		for _, one := range []*world{w, other} {
			if one.Status().AnotherSyncer == "" {
				return fmt.Errorf("%+v", one.Status())
			}
		}
		return nil
	})
}

// A downstream object that lost the annotation or the label of the syncer gets it back, and is
// deleted with its origin.
func TestLostMarks(t *testing.T) {
	w := newPlainWorld(t, planetest.Shared(t, 2)[0], syncer.Options{Types: only(configMaps)})
	for name, patch := range map[string]string{
		"origin": `{"metadata":{"annotations":{"syncer.atoll.dev/origin":null}}}`,
		"all":    `{"metadata":{"annotations":null}}`,
		"label":  `{"metadata":{"annotations":{"syncer.atoll.dev/origin":null},"labels":null}}`,
	} {
		w.up.create(configMaps, fmt.Sprintf(settings, name, "v"))
		w.down.has(configMaps, name, map[string]string{"data.k": "v"})
		before := w.down.uid(t, configMaps, name)
		w.down.patch(configMaps, name, patch)
		planetest.Eventually(t, long, "the marks are back", func(ctx context.Context) error {
			obj, err := w.down.get(ctx, configMaps, name)
			if err != nil {
				return err
			}
			if obj.GetAnnotations()["syncer.atoll.dev/origin"] != w.up.namespace+"/"+name || obj.GetLabels()["syncer.atoll.dev/owner"] == "" {
				return fmt.Errorf("%v %v", obj.GetAnnotations(), obj.GetLabels())
			}
			return nil
		})
		require.Equal(t, before, w.down.uid(t, configMaps, name))
		w.up.delete(configMaps, name)
		w.down.lacks(configMaps, name)
		w.up.lacks(configMaps, name)
	}
}

// A foreign object with the name of a downstream object is reported and left alone. When the
// foreign object is deleted, the downstream object is created.
func TestForeignObjectLeaves(t *testing.T) {
	w := newPlainWorld(t, planetest.Shared(t, 2)[0], syncer.Options{Types: only(configMaps)})
	planetest.Apply(t, w.down.plane, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", w.down.namespace))
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "theirs"},
	}}
	require.NoError(t, w.down.make(t.Context(), configMaps, theirs))
	w.up.create(configMaps, fmt.Sprintf(settings, "a", "v"))
	w.problem(t, configMaps, "a", syncer.ReasonForeign)
	w.down.has(configMaps, "a", map[string]string{"data.k": "theirs"})
	w.down.delete(configMaps, "a")
	w.down.has(configMaps, "a", map[string]string{"data.k": "v"})
}

// The upstream has no namespace controller. So the syncer finalizes a deleted namespace there, and
// deletes the downstream namespace that it created.
func TestNamespaceEnds(t *testing.T) {
	up, down := planetest.Shared(t, 1)[0], planetest.SharedPods(t, 1)[0]
	namespace := planetest.Namespace(t, up)
	w := &world{up: newSide(t, up, namespace), down: newSide(t, down, namespace)}
	w.start(t, syncer.Options{Types: only(configMaps), NamespaceSync: syncer.NamespaceOptions{
		Finish: true, Delete: true, Metadata: []string{"team"},
	}})
	w.up.create(configMaps, fmt.Sprintf(settings, "a", "v"))
	w.down.has(configMaps, "a", map[string]string{"data.k": "v"})
	w.up.global().patch(namespaces, namespace, `{"metadata":{"labels":{"team":"a"}}}`)
	w.down.global().has(namespaces, namespace, map[string]string{"metadata.labels.team": "a"})
	w.up.global().delete(namespaces, namespace)
	w.down.global().lacks(namespaces, namespace)
	w.up.global().lacks(namespaces, namespace)
	_, err := w.up.get(t.Context(), configMaps, "a")
	require.True(t, apierrors.IsNotFound(err), err)
}

// API servers count annotations of a Deployment as generations. A syncer that writes the status of a Deployment of several
// clusters into an annotation still comes to rest.
func TestDeploymentOfSeveralClusters(t *testing.T) {
	w := newWorld(t, syncer.Options{})
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2, selector: {matchLabels: {app: a}}, template: "+pod+"}}"), &obj.Object))
	obj.SetLabels(map[string]string{"state.workload.kcp.io/" + w.up.target: "Sync"})
	require.NoError(t, w.up.make(t.Context(), deployments, obj))
	planetest.Eventually(t, long, "the annotation shows two ready replicas", func(ctx context.Context) error {
		a, err := w.up.get(ctx, deployments, "a")
		if err != nil {
			return err
		}
		var status struct{ ReadyReplicas int }
		text := a.GetAnnotations()["status.workload.kcp.io/"+w.up.target]
		if err := json.Unmarshal([]byte(text), &status); err != nil || status.ReadyReplicas != 2 {
			return fmt.Errorf("the annotation is %q", text)
		}
		return nil
	})
	w.restFor(t, 10*time.Second, kinds[:1])
}
