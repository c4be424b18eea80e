// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// Claims finds the fields that coordinators write, and Reclaim puts those of another object in their place.
func TestClaims(t *testing.T) {
	object := func(claim, plain string, finalizers ...string) *unstructured.Unstructured {
		o := newAccount("acme")
		o.Object["spec"].(map[string]any)["fanout"] = map[string]any{"stage": claim}
		o.SetAnnotations(map[string]string{"example.com/claim": claim, "fanout.atoll.dev/removal-held": claim, "example.com/plain": plain})
		o.SetFinalizers(finalizers)
		return o
	}
	const held, stored = "metadata.annotations[fanout.atoll.dev/removal-held]", "metadata.annotations[example.com/claim]"
	for name, c := range map[string]struct {
		carrier fanout.Carrier
		paths   []string
	}{
		"in the spec":      {fanout.Carrier{}, []string{held, "metadata.finalizers[fanout.atoll.dev/primary]", "spec.fanout"}},
		"in an annotation": {fanout.InAnnotation("example.com/claim"), []string{stored, held, "metadata.finalizers[fanout.atoll.dev/primary]"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := account.Kind()
			k.Claim = c.carrier
			one := object("Active", "one", "fanout.atoll.dev/primary", "example.com/x")
			before := one.DeepCopy()
			require.Equal(t, c.paths, slices.Sorted(maps.Keys(k.Claims(one))))
			other := object("Removing", "other", "fanout.atoll.dev/primary")
			got := k.Reclaim(one, other)
			require.Equal(t, k.Claims(other), k.Claims(got))
			require.Equal(t, "one", got.GetAnnotations()["example.com/plain"])
			require.Equal(t, one.GetFinalizers(), got.GetFinalizers())
			require.Equal(t, before, one)
			bare := k.Reclaim(one, newAccount("acme"))
			bare.SetFinalizers(nil)
			require.Empty(t, k.Claims(bare))
		})
	}
	require.Empty(t, account.Kind().Claims(nil))
}

func TestKinds(t *testing.T) {
	c := coordinator(t, regiontest.NewRing(), waltest.NewMemory(), fanout.Options{Kinds: account.Kinds()})
	kinds := c.Kinds()
	require.Len(t, kinds, 2)
	kinds[0] = fanout.Kind{}
	require.Equal(t, "ServiceCluster", c.Kinds()[0].Kind)
}
