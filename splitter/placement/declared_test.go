// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// typeDefinition returns the definition of a type of example.org/v1 that accepts any spec.
func typeDefinition(plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	free := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.org", Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": free, "status": free}},
			}}},
		},
	}
}

// The pod templates, the references and the scaling objects of a declared type count as those of a built-in one: its
// dependents are placed with it, and objects that scale it are reported.
func TestDeclaredTypes(t *testing.T) {
	var specs []v1alpha1.WorkloadTypeSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
- resource: {group: example.org, version: v1, resource: engines, kind: Engine}
  division: EveryCluster
  templates: ['spec.parts[*].pod']
  references: [{path: spec.credentials, resource: secrets}]
- resource: {group: example.org, version: v1, resource: scalers, kind: Scaler}
  division: None
  scaleTarget: {path: spec.target, apiVersion: example.org/v1, kind: Engine}
`), &specs))
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		require.NoError(t, w.AddCRD(typeDefinition("engines", "Engine")))
		require.NoError(t, w.AddCRD(typeDefinition("scalers", "Scaler")))
		w.startPlacement(placement.Options{WorkloadTypes: specs}, cluster("a"), cluster("b"))
		w.policy("all", "{dependents: true, maxClusters: 1}")
		engines := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "engines"}
		for _, name := range []string{"key", "first", "second", "other"} {
			w.create(core("secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}}")
		}
		w.create(core("services"), "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {selector: {part: two}}}")
		w.create(engines, `{apiVersion: example.org/v1, kind: Engine, metadata: {name: x}, spec: {credentials: key, parts: [
			{pod: {metadata: {labels: {part: one}}, spec: {volumes: [{secret: {secretName: first}}]}}},
			{pod: {metadata: {labels: {part: two}}, spec: {volumes: [{secret: {secretName: second}}]}}}]}}`)
		w.rest()
		at := w.annotation(engines, "x", "placement")
		require.Len(t, at, 1)
		for _, name := range []string{"key", "first", "second"} {
			require.Equal(t, at, w.targets(core("secrets"), name), name)
		}
		require.Equal(t, "NONE", w.targets(core("secrets"), "other"))
		require.Equal(t, at, w.targets(core("services"), "x"), "by the labels of the second template")
		require.Equal(t, allPlaced, w.dependentsPlaced("all"))
		w.create(engines.GroupVersion().WithResource("scalers"), "{apiVersion: example.org/v1, kind: Scaler, metadata: {name: s}, spec: {target: {name: x}}}")
		require.Equal(t, "False Undivided Scaler s (of Engine x)"+notDivided, w.dependentsPlaced("all"))
	})
}

// An object of a custom type is placed with the workloads that refer to it by a declared path, and an object of a type with
// a podSelector with the workloads whose pods it selects. It leaves their clusters with them.
func TestDeclaredDependents(t *testing.T) {
	var specs []v1alpha1.WorkloadTypeSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
- resource: {group: example.org, version: v1, resource: engines, kind: Engine}
  division: EveryCluster
  templates: [spec.pod]
  references: [{path: 'spec.checks[*].name', resource: checks, group: example.org, version: v1}, {path: spec.more, resource: checks, group: example.org, version: v1}]
- resource: {group: example.org, version: v1, resource: monitors, kind: Monitor}
  division: None
  podSelector: spec.selector
`), &specs))
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		for plural, kind := range map[string]string{"engines": "Engine", "checks": "Check", "monitors": "Monitor"} {
			require.NoError(t, w.AddCRD(typeDefinition(plural, kind)))
		}
		w.startPlacement(placement.Options{WorkloadTypes: specs}, cluster("a"), cluster("b"))
		w.policy("all", "{dependents: true, maxClusters: 1}")
		version := schema.GroupVersion{Group: "example.org", Version: "v1"}
		checks, monitors, engines := version.WithResource("checks"), version.WithResource("monitors"), version.WithResource("engines")
		for _, name := range []string{"one", "two", "three", "other"} {
			w.create(checks, "{apiVersion: example.org/v1, kind: Check, metadata: {name: "+name+"}}")
		}
		for name, selector := range map[string]string{"labels": "{app: x}", "expressions": "{matchExpressions: [{key: app, operator: Exists}]}", "all": "{}", "none": "x", "another": "{matchLabels: {app: z}}"} {
			w.create(monitors, "{apiVersion: example.org/v1, kind: Monitor, metadata: {name: "+name+"}, spec: {selector: "+selector+"}}")
		}
		w.create(engines, `{apiVersion: example.org/v1, kind: Engine, metadata: {name: x}, spec: {checks: [{name: one}, {name: two}], more: three, pod: {metadata: {labels: {app: x}}}}}`)
		w.rest()
		at := w.annotation(engines, "x", "placement")
		require.Len(t, at, 1)
		w.everywhere(checks, map[string]string{"one": at, "two": at, "three": at, "other": "NONE"})
		w.everywhere(monitors, map[string]string{"labels": at, "expressions": at, "all": at, "none": "NONE", "another": "NONE"})
		require.Equal(t, allPlaced, w.dependentsPlaced("all"))

		w.patch(engines, "x", `{"spec":{"checks":[{"name":"two"}],"pod":{"metadata":{"labels":{"app":"z"}}}}}`)
		time.Sleep(10 * time.Minute)
		w.everywhere(checks, map[string]string{"one": "NONE", "two": at, "three": at, "other": "NONE"})
		w.everywhere(monitors, map[string]string{"labels": "NONE", "expressions": at, "all": at, "none": "NONE", "another": at})
		w.remove(engines, "x")
		time.Sleep(10 * time.Minute)
		w.everywhere(checks, map[string]string{"two": "NONE", "three": "NONE"})
		w.everywhere(monitors, map[string]string{"all": "NONE", "another": "NONE"})
	})
}

func TestDeclaredTypesAreChecked(t *testing.T) {
	w := newWorld(t)
	for want, spec := range map[string]v1alpha1.WorkloadTypeSpec{
		"Options.WorkloadTypes[0] (): spec.resource.version: must be set":        {},
		"Options.WorkloadTypes[0] (jobs): spec.resource: jobs.batch is built in": workload.BuiltinType("jobs").Spec(),
	} {
		_, err := placement.New(w.api, w.script(), placement.Options{WorkloadTypes: []v1alpha1.WorkloadTypeSpec{spec}})
		require.ErrorContains(t, err, want)
	}
}
