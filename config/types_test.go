// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	operatorv1alpha1 "github.com/atoll-dev/atoll/region/operator/v1alpha1"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// scheme returns a scheme of all types of this module.
func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		accountv1alpha1.AddToScheme, fanoutv1alpha1.AddToScheme, masterv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme,
		regionv1alpha1.AddToScheme, splitterv1alpha1.AddToScheme, syncerv1alpha1.AddToScheme,
	} {
		require.NoError(t, add(s))
		require.NoError(t, add(s), "not idempotent")
	}
	return s
}

// TestTypesMatchCRDs checks that each CRD has its Go type and list, and that
// every field of the type is in the schema and survives a round trip.
func TestTypesMatchCRDs(t *testing.T) {
	s := scheme(t)
	for _, name := range crdNames(t) {
		t.Run(name, func(t *testing.T) {
			crd, err := config.CRD(name)
			require.NoError(t, err)
			kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind}
			list, err := s.New(kind.GroupVersion().WithKind(crd.Spec.Names.ListKind))
			require.NoError(t, err)
			require.True(t, meta.IsListType(list))

			v := validatorFor(t, name, nil)
			obj, err := s.New(kind)
			require.NoError(t, err)
			seed := 0
			fill(reflect.ValueOf(obj).Elem(), &seed)

			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
			require.NoError(t, err)
			require.Empty(t, v.unknown(content), "the schema lacks fields of the type")
			back, err := s.New(kind)
			require.NoError(t, err)
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, back))
			require.Empty(t, cmp.Diff(obj, back), "through unstructured")

			data, err := json.Marshal(obj)
			require.NoError(t, err)
			back, err = s.New(kind)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, back))
			require.Empty(t, cmp.Diff(obj, back), "through JSON")
		})
	}
}

// TestEmptyObjectsStayEmpty checks that a typed object without content sends only
// empty metadata and an empty spec. If it sent an empty payload field, this would
// count as a payload on a guard.
func TestEmptyObjectsStayEmpty(t *testing.T) {
	for name, obj := range map[string]runtime.Object{
		"ServiceCluster": &regionv1alpha1.ServiceCluster{},
		"RegionClaim":    &regionv1alpha1.RegionClaim{},
		"Account":        &accountv1alpha1.Account{},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}}, content, name)
		data, err := json.Marshal(obj)
		require.NoError(t, err)
		require.JSONEq(t, `{"metadata":{},"spec":{}}`, string(data), name)
	}
}

// TestStatus checks that each CRD has Age as its last printer column. Each CRD
// except PeerSets and Operations also has the status subresource,
// observedGeneration, and conditions that are a map by type. PeerSets and
// Operations have no status.
func TestStatus(t *testing.T) {
	withoutStatus := []string{"peersets.fanout.atoll.dev", "operations.fanout.atoll.dev"}
	for _, name := range crdNames(t) {
		t.Run(name, func(t *testing.T) {
			crd, err := config.CRD(name)
			require.NoError(t, err)
			version := crd.Spec.Versions[0]
			require.Equal(t, "Age", version.AdditionalPrinterColumns[len(version.AdditionalPrinterColumns)-1].Name)
			if slices.Contains(withoutStatus, name) {
				require.Nil(t, version.Subresources.Status)
				return
			}
			require.NotNil(t, version.Subresources.Status)
			status := version.Schema.OpenAPIV3Schema.Properties["status"]
			require.Contains(t, status.Properties, "observedGeneration")
			conditions := status.Properties["conditions"]
			require.Equal(t, "map", *conditions.XListType)
			require.Equal(t, []string{"type"}, conditions.XListMapKeys)
		})
	}
}
