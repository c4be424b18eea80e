// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func TestDifferences(t *testing.T) {
	t.Parallel()
	want := newAccount("acme", []any{"Tenant", "Provider"}, map[string]any{"kind": "User", "name": "alice"})
	want.SetLabels(map[string]string{"example.com/team": "blue"})
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		says   []string
	}{
		"nothing": {func(*unstructured.Unstructured) {}, nil},
		"status":  {func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"phase": "Ready"} }, nil},
		"an item": {
			func(o *unstructured.Unstructured) {
				o.Object["spec"].(map[string]any)["subjects"].([]any)[0].(map[string]any)["name"] = "bob"
			},
			[]string{`eu has spec.subjects[0].name "bob" instead of "alice"`},
		},
		"a length": {
			setRoles("Tenant"), []string{`eu has spec.roles ["Tenant"] instead of ["Tenant","Provider"]`},
		},
		"lost": {
			func(o *unstructured.Unstructured) { delete(o.Object["spec"].(map[string]any), "roles") },
			[]string{`eu has spec.roles nothing instead of ["Tenant","Provider"]`},
		},
		"added": {
			func(o *unstructured.Unstructured) {
				o.Object["spec"].(map[string]any)["metadata"] = map[string]any{"displayName": "Acme"}
			},
			[]string{`eu has spec.metadata {"displayName":"Acme"} instead of nothing`},
		},
		"a label": {
			func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"example.com/team": "red"}) },
			[]string{`eu has metadata.labels["example.com/team"] "red" instead of "blue"`},
		},
		"all of it": {func(o *unstructured.Unstructured) { o.Object["spec"] = "no" }, []string{`eu has spec "no" instead of {"roles":["Tenant","Provider"],"subjects":[{"kind":"User","name":"alice"}]}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := want.DeepCopy()
			test.change(got)
			found, err := differences(Kind(), want, map[region.PeerName]*unstructured.Unstructured{"eu": got, "us": want})
			require.NoError(t, err)
			var says []string
			for _, d := range found {
				says = append(says, d.String())
			}
			require.Equal(t, test.says, says)
		})
	}
	found, err := differences(Kind(), want, map[region.PeerName]*unstructured.Unstructured{"eu": nil})
	require.NoError(t, err)
	require.Equal(t, "eu lacks the object", found[0].String())
}

func TestDifferencesOfSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	kind := secrets()
	secret := func(password string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "db"}, "data": map[string]any{"password": password}}}
	}
	found, err := differences(kind, secret("b25l"), map[region.PeerName]*unstructured.Unstructured{"eu": secret("dHdv")})
	require.NoError(t, err)
	require.Equal(t, []Difference{{Peer: "eu", Field: "data.password", Got: hidden, Want: hidden}}, found)
	require.Equal(t, "eu differs in data.password", found[0].String())
}

func TestCompare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		_, err := c.Add(t.Context(), newAccount("acme", []any{"Tenant"}), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		same, err := Compare(t.Context(), ring, Kind(), loop.ParseKey("acme"))
		require.NoError(t, err)
		require.Empty(t, same.Differences)
		require.True(t, same.Unread.Complete())
		require.Equal(t, region.PeerName("us-east"), same.Reference)

		ring.Partition("eu-west", true)
		deleteIn(t, connTo(t, ring, "ap-south"), resource, "", "acme")
		differ, err := Compare(t.Context(), ring, Kind(), loop.ParseKey("acme"))
		require.NoError(t, err)
		require.Equal(t, []Difference{{Peer: "ap-south"}}, differ.Differences)
		require.ErrorContains(t, differ.Unread.Err(), "eu-west")

		nobody, err := Compare(t.Context(), ring, Kind(), loop.ParseKey("nobody"))
		require.NoError(t, err)
		require.Empty(t, nobody.Reference)
		_, err = Compare(t.Context(), regiontest.NewRing(), Kind(), loop.ParseKey("acme"))
		require.ErrorIs(t, err, region.ErrNoPeers)
	})
}

// secrets returns a kind that is not one of Atoll's types.
func secrets() fanout.Kind {
	return fanout.Kind{
		Resource:   schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		Kind:       "Secret",
		Namespaced: true,
		Mode:       fanout.Everywhere,
		Claim:      fanout.InAnnotation("example.com/claim"),
		Inert: func(obj *unstructured.Unstructured) error {
			delete(obj.Object, "data")
			return nil
		},
	}
}
