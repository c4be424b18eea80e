// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

const accounts = "accounts.catalog.kubecarrier.io"

var crdGroupResource = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// server returns an API server and its clients.
func server(t *testing.T, opts regiontest.Options) (*regiontest.Server, region.API) {
	t.Helper()
	s := regiontest.NewServer(opts)
	t.Cleanup(s.Close)
	api, err := region.APIFor(s.Config())
	require.NoError(t, err)
	return s, api
}

// edited returns the accounts CRD after edit.
func edited(t *testing.T, edit func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd, err := config.CRD(accounts)
	require.NoError(t, err)
	edit(crd)
	return crd
}

// read returns the accounts CRD of an API server, or nil.
func read(t *testing.T, api region.API) *unstructured.Unstructured {
	t.Helper()
	crd, err := api.Dynamic().Resource(crdGroupResource.WithVersion("v1")).Get(t.Context(), accounts, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return crd
}

// writes returns the verbs of all requests for CRDs except get.
func writes(s *regiontest.Server) []string {
	var verbs []string
	for _, r := range s.Requests() {
		if r.GroupResource() == crdGroupResource && r.Verb != "get" {
			verbs = append(verbs, r.Verb)
		}
	}
	return verbs
}

func TestInstallIsIdempotent(t *testing.T) {
	_, api := server(t, regiontest.Options{})
	installed, err := config.InstallCRDs(t.Context(), api, config.InstallOptions{})
	require.NoError(t, err)
	require.Len(t, installed, len(crdNames(t)))
	for _, i := range installed {
		require.Equal(t, config.Created, i.Change, i.Name)
	}
	require.Equal(t, config.SchemaVersion, read(t, api).GetLabels()[config.SchemaVersionLabel])

	installed, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{})
	require.NoError(t, err)
	for _, i := range installed {
		require.Equal(t, config.Installed{Name: i.Name, Change: config.Unchanged, Before: config.SchemaVersion}, i)
	}
}

func TestInstallGroups(t *testing.T) {
	_, api := server(t, regiontest.Options{})
	installed, err := config.InstallCRDs(t.Context(), api, config.InstallOptions{Groups: []string{"workload.kcp.io", "fanout.atoll.dev"}})
	require.NoError(t, err)
	require.Len(t, installed, 3)
	_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{Groups: []string{"example.com"}})
	require.ErrorContains(t, err, `InstallOptions.Groups: no CRD of this release is of group "example.com"`)
}

func TestInstallRefusesForeign(t *testing.T) {
	for name, label := range map[string]string{"no label": "", "a label that is no number": "soon"} {
		t.Run(name, func(t *testing.T) {
			s, api := server(t, regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{edited(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
				crd.Labels = map[string]string{config.SchemaVersionLabel: label}
				if label == "" {
					crd.Labels = nil
				}
				crd.Spec.Names.ShortNames = []string{"theirs"}
				crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["extra"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			})}})
			before := read(t, api)
			_, err := config.InstallCRDs(t.Context(), api, config.InstallOptions{})
			foreign, ok := errors.AsType[*config.ForeignCRDError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, accounts, foreign.Name)
			require.Contains(t, err.Error(), `- spec.names.shortNames: ["theirs"]`+"\n"+`+ spec.names.shortNames: ["acc"]`)
			require.Contains(t, err.Error(), `- spec.versions[v1alpha1].schema.openAPIV3Schema.properties.extra: {"type":"string"}`)
			require.Empty(t, writes(s), "something was written")
			require.Equal(t, before, read(t, api))

			installed, err := config.InstallCRDs(t.Context(), api, config.InstallOptions{Override: true})
			require.NoError(t, err)
			i := slices.IndexFunc(installed, func(i config.Installed) bool { return i.Name == accounts })
			require.Equal(t, config.Installed{Name: accounts, Change: config.Updated}, installed[i])
			present := read(t, api)
			require.Equal(t, before.GetUID(), present.GetUID(), "its objects are gone")
			require.NotContains(t, specOf(t, present), "theirs")
			require.NotContains(t, specOf(t, present), `"extra"`)
		})
	}
}

// specOf returns the spec as JSON.
func specOf(t *testing.T, crd *unstructured.Unstructured) string {
	t.Helper()
	data, err := runtime.Encode(unstructured.UnstructuredJSONScheme, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Spec", "spec": crd.Object["spec"],
	}})
	require.NoError(t, err)
	return string(data)
}

func TestInstallUpgrades(t *testing.T) {
	older := edited(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Labels[config.SchemaVersionLabel] = "0"
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["retired"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
	_, api := server(t, regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{older}})
	installed, err := config.InstallCRDs(t.Context(), api, config.InstallOptions{Groups: []string{"catalog.kubecarrier.io"}})
	require.NoError(t, err)
	require.Equal(t, config.Installed{Name: accounts, Change: config.Updated, Before: "0"}, installed[0])
	require.NotContains(t, specOf(t, read(t, api)), "retired")
}

func TestInstallLooksAgainAfterConflict(t *testing.T) {
	older := edited(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Labels[config.SchemaVersionLabel] = "0"
	})
	s, api := server(t, regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{older}})
	s.Inject(regiontest.Fault{Verb: "update", Resource: crdGroupResource, Name: accounts, Do: regiontest.Refuse(409)})
	installed, err := config.InstallCRDs(t.Context(), api, config.InstallOptions{Groups: []string{"catalog.kubecarrier.io"}})
	require.NoError(t, err)
	require.Equal(t, config.Updated, installed[0].Change)
	require.Equal(t, config.SchemaVersion, read(t, api).GetLabels()[config.SchemaVersionLabel])
}

func TestInstallRefusesNewer(t *testing.T) {
	newer := edited(t, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Labels[config.SchemaVersionLabel] = "12" })
	s, api := server(t, regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{newer}})
	_, err := config.InstallCRDs(t.Context(), api, config.InstallOptions{Override: true})
	refusal, ok := errors.AsType[*config.NewerCRDError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, config.NewerCRDError{Name: accounts, Present: "12", Ours: config.SchemaVersion}, *refusal)
	require.ErrorContains(t, err, "has schema version 12, this release has 1")
	require.Empty(t, writes(s))
}

func TestInstallWithoutRights(t *testing.T) {
	for _, verb := range []string{"get", "patch"} {
		t.Run(verb, func(t *testing.T) {
			_, api := server(t, regiontest.Options{Authorize: func(r regiontest.Request) error {
				if r.GroupResource() == crdGroupResource && r.Verb == verb {
					return errors.New("no role allows it")
				}
				return nil
			}})
			_, err := config.InstallCRDs(t.Context(), api, config.InstallOptions{})
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, verb+" CRD ")
			require.ErrorContains(t, err, "needs the verbs get, create, patch and update on customresourcedefinitions.apiextensions.k8s.io")
		})
	}
}

func TestInstallNamesTakenByAnother(t *testing.T) {
	other := edited(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Name = "ledgers.catalog.kubecarrier.io"
		crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "ledgers", Singular: "ledger", Kind: "Ledger", ListKind: "LedgerList", ShortNames: []string{"acc"}}
	})
	_, api := server(t, regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{other}})
	_, err := config.InstallCRDs(t.Context(), api, config.InstallOptions{})
	require.ErrorContains(t, err, "CRD "+accounts+" is not accepted")
}

func TestInstallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := server(t, regiontest.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.Inject(regiontest.Fault{Verb: "get", Resource: crdGroupResource, Name: accounts, Skip: 1, Do: regiontest.Hang()})
		_, err := config.InstallCRDs(ctx, api, config.InstallOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "CRDs were applied, but CRD "+accounts+" is not established yet")

		installed, err := config.InstallCRDs(t.Context(), api, config.InstallOptions{})
		require.NoError(t, err)
		require.Equal(t, config.Unchanged, installed[0].Change)
	})
}
