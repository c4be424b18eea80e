// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer/crds"
)

// The role that package rights defines for each side is sufficient for a Controller, and the Controller uses each
// right in it.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	t.Parallel()
	goods, words := schema.GroupResource{Group: "example.com", Resource: "goods"}, schema.GroupResource{Group: "example.com", Resource: "words"}
	w := &world{t: t, servers: map[string]*regiontest.Server{}, apis: map[string]region.API{}}
	program := map[string]region.API{}
	grants := map[string]*rightstest.Grants{
		crds.Upstream: rightstest.New(rights.Types(goods).Rules...), "a": rightstest.New(rights.Types(words).Rules...),
	}
	for side, g := range grants {
		s := regiontest.NewServer(regiontest.Options{History: 10000, Tokens: rightstest.Tokens(), Authorize: g.Authorize})
		t.Cleanup(s.Close)
		w.servers[side], w.apis[side], program[side] = s, rightstest.API(t, s, rightstest.Admin), rightstest.API(t, s, rightstest.Program)
	}
	c, err := crds.New(crds.Options{
		Upstream: program[crds.Upstream], Timeout: time.Hour, // the test uses the real clock, in parallel with others
		Targets: func() []crds.Target { return []crds.Target{{Name: "a", API: program["a"]}} },
		Policy: crds.Policy{
			{Group: "example.com", Resource: "goods", Direction: crds.Pull, Remove: true},
			{Group: "example.com", Resource: "words", Direction: crds.Push, Remove: true},
		},
	})
	require.NoError(t, err)
	w.c = c
	from := map[string]string{"goods": "a", "words": crds.Upstream}
	to := map[string]string{"goods": crds.Upstream, "words": "a"}
	for plural, side := range from {
		w.define(side, plural, "{type: integer, maximum: 10}")
	}
	w.sync()
	for plural, side := range from { // narrower: the controller checks for objects
		client := w.apis[side].Dynamic().Resource(definitions)
		obj, err := client.Get(t.Context(), plural+".example.com", metav1.GetOptions{})
		require.NoError(t, err)
		next := obj.DeepCopy()
		next.Object["spec"] = decoded(t, definition(t, plural, "{type: integer, maximum: 5}")).Object["spec"]
		_, err = client.Update(t.Context(), next, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	w.sync()
	for plural, side := range to {
		require.Equal(t, 5, w.maximum(side, plural))
	}
	for plural, side := range from {
		w.drop(side, plural)
	}
	w.sync()
	for plural, side := range to {
		require.Nil(t, w.crd(side, plural))
	}
	for side, g := range grants {
		require.Empty(t, g.Denied(w.servers[side].Requests()), side)
		require.Empty(t, g.Unused(), side)
	}
}

func decoded(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: content}
}
