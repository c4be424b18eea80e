// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mission_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"context"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

const syncTargets = "synctargets.workload.kcp.io"

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// only is the option that limits these tests to one CRD, which no other test uses.
var only = config.InstallOptions{Groups: []string{"workload.kcp.io"}}

// seed replaces the SyncTarget CRD by an edited CRD.
func seed(t *testing.T, client dynamic.ResourceInterface, edit func(crd *unstructured.Unstructured)) {
	t.Helper()
	remove(t, client)
	crds, err := config.CRDs()
	require.NoError(t, err)
	for _, crd := range crds {
		if crd.GetName() != syncTargets {
			continue
		}
		edit(crd)
		_, err := client.Create(t.Context(), crd, metav1.CreateOptions{FieldManager: "somebody"})
		require.NoError(t, err)
	}
}

func remove(t *testing.T, client dynamic.ResourceInterface) {
	t.Helper()
	err := client.Delete(t.Context(), syncTargets, metav1.DeleteOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	planetest.Eventually(t, time.Minute, "the CRD is gone", func(ctx context.Context) error {
		_, err := client.Get(ctx, syncTargets, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	})
}

func TestInstall(t *testing.T) {
	p := planetest.New(t, plane.Options{Name: "install"})
	clients, err := region.APIFor(p.Config())
	require.NoError(t, err)
	client := clients.Dynamic().Resource(definitions)

	t.Run("all, twice", func(t *testing.T) {
		installed, err := config.InstallCRDs(t.Context(), clients, config.InstallOptions{})
		require.NoError(t, err)
		require.Len(t, installed, 13)
		for _, i := range installed {
			require.Equal(t, config.Created, i.Change, i.Name)
		}
		installed, err = config.InstallCRDs(t.Context(), clients, config.InstallOptions{})
		require.NoError(t, err)
		for _, i := range installed {
			require.Equal(t, config.Unchanged, i.Change, i.Name)
		}
	})
	t.Run("served when it returns", func(t *testing.T) {
		remove(t, client)
		_, err := config.InstallCRDs(t.Context(), clients, only)
		require.NoError(t, err)
		k := newKubectl(t, p)
		k.must(t, "", "get", "synctargets")
	})
	t.Run("an older one is upgraded", func(t *testing.T) {
		seed(t, client, func(crd *unstructured.Unstructured) {
			crd.SetLabels(map[string]string{config.SchemaVersionLabel: "0"})
			addField(t, crd, "retired")
		})
		installed, err := config.InstallCRDs(t.Context(), clients, only)
		require.NoError(t, err)
		require.Equal(t, config.Installed{Name: syncTargets, Change: config.Updated, Before: "0"}, installed[0])
		require.NotContains(t, fieldsOf(t, client), "retired")
	})
	t.Run("a newer one is refused", func(t *testing.T) {
		seed(t, client, func(crd *unstructured.Unstructured) {
			crd.SetLabels(map[string]string{config.SchemaVersionLabel: "99"})
		})
		_, err := config.InstallCRDs(t.Context(), clients, only)
		newer, ok := errors.AsType[*config.NewerCRDError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "99", newer.Present)
	})
	t.Run("a foreign one is refused, then overridden", func(t *testing.T) {
		seed(t, client, func(crd *unstructured.Unstructured) {
			crd.SetLabels(nil)
			addField(t, crd, "cells")
		})
		_, err := config.InstallCRDs(t.Context(), clients, only)
		foreign, ok := errors.AsType[*config.ForeignCRDError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, `- spec.versions[v1alpha1].schema.openAPIV3Schema.properties.cells: {"type":"string"}`, foreign.Diff)
		require.Contains(t, fieldsOf(t, client), "cells")

		_, err = config.InstallCRDs(t.Context(), clients, config.InstallOptions{Groups: only.Groups, Override: true})
		require.NoError(t, err)
		require.NotContains(t, fieldsOf(t, client), "cells")
	})
	t.Run("without the rights, and with exactly those", func(t *testing.T) {
		remove(t, client)
		for _, tc := range []struct {
			verbs   string
			refused string
		}{
			{verbs: "[list]", refused: "get CRD " + syncTargets},
			{verbs: "[get]", refused: "patch CRD " + syncTargets},
			{verbs: "[get, patch]", refused: "patch CRD " + syncTargets},
			{verbs: "[get, create, patch, update]"},
		} {
			kubeconfig, err := p.RunAs(t.Context(), []byte(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: crd-installer}
rules:
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: `+tc.verbs+`}
`))
			require.NoError(t, err)
			restricted, err := plane.ConfigOf(kubeconfig)
			require.NoError(t, err)
			limited, err := region.APIFor(restricted)
			require.NoError(t, err)
			_, err = config.InstallCRDs(t.Context(), limited, only)
			if tc.refused == "" {
				require.NoError(t, err, tc.verbs)
				continue
			}
			require.True(t, apierrors.IsForbidden(err), "%s: %v", tc.verbs, err)
			require.ErrorContains(t, err, tc.refused)
		}
	})
}

// addField adds a field to a CRD's schema.
func addField(t *testing.T, crd *unstructured.Unstructured, name string) {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(versions[0].(map[string]any), "string", "schema", "openAPIV3Schema", "properties", name, "type"))
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
}

// fieldsOf returns the names of the fields at the root of the CRD's schema.
func fieldsOf(t *testing.T, client dynamic.ResourceInterface) []string {
	t.Helper()
	crd, err := client.Get(t.Context(), syncTargets, metav1.GetOptions{})
	require.NoError(t, err)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	properties, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties")
	require.NoError(t, err)
	var names []string
	for name := range properties {
		names = append(names, name)
	}
	return names
}
