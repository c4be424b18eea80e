// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.plane.example.com}
spec:
  group: plane.example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: plane.example.com/v1, kind: Widget, metadata: {name: one}}
- {apiVersion: plane.example.com/v1, kind: Widget, metadata: {name: two}}
`

func TestApplyDefinitionAndItsObjects(t *testing.T) {
	p := planetest.Shared(t, 1)[0]
	planetest.Apply(t, p, widgets)
	planetest.Apply(t, p, widgets)
	resource := schema.GroupVersionResource{Group: "plane.example.com", Version: "v1", Resource: "widgets"}
	list, err := planetest.Dynamic(t, p.Config()).Resource(resource).Namespace("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 2)
}

func TestApplyNamesWhatFailed(t *testing.T) {
	p := planetest.Shared(t, 1)[0]
	err := p.Apply(t.Context(), []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: Not_A_Name}}"))
	require.ErrorContains(t, err, "eu-west: apply ConfigMap Not_A_Name")
	err = p.Apply(t.Context(), []byte("{apiVersion: nowhere.example.com/v1, kind: Nothing, metadata: {name: x}}"))
	require.ErrorContains(t, err, "eu-west: apply Nothing x: no matches for kind")
}
