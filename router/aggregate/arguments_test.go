// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// Each call gets a missing or invalid argument. The call does not panic, and its error names the fault.
func TestArguments(t *testing.T) {
	k := region.Key{Provider: "a", Name: "b"}
	members, err := aggregate.Fixed()
	require.NoError(t, err)
	merged, err := aggregate.New(members, aggregate.Options{})
	require.NoError(t, err)
	configMaps := merged.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	ctx := t.Context()
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New", "set is nil", func() error { _, err := aggregate.New(nil, aggregate.Options{}); return err }},
		{"New typed", "set is nil", func() error { _, err := aggregate.New((*aggregate.Members)(nil), aggregate.Options{}); return err }},
		{"Regions", "router is nil", func() error { _, err := aggregate.Regions(nil, router.Self(), nil); return err }},
		{"Regions identity", "none is given", func() error {
			r, err := router.New(region.Fixed(), router.Options{})
			require.NoError(t, err)
			_, err = aggregate.Regions(r, router.Identity{}, nil)
			return err
		}},
		{"Fixed region", "region", func() error { _, err := aggregate.Fixed(aggregate.Member{}); return err }},
		{"Fixed client", "has no client", func() error { _, err := aggregate.Fixed(aggregate.Member{Region: k}); return err }},
		{"Fixed client typed", "has no client", func() error {
			_, err := aggregate.Fixed(aggregate.Member{Region: k, Client: (*dynamic.DynamicClient)(nil)})
			return err
		}},
		{"ListAll", "type", func() error { _, err := merged.Reader("").ListAll(ctx, metav1.ListOptions{}); return err }},
		{"ListJSON", "func is nil", func() error {
			_, err := merged.Reader("", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).ListJSON(ctx, aggregate.Encoding{}, metav1.ListOptions{}, nil)
			return err
		}},
		{"Create", "object is nil", func() error { _, err := configMaps.Create(ctx, nil, metav1.CreateOptions{}); return err }},
		{"Update", "object is nil", func() error { _, err := configMaps.Update(ctx, nil, metav1.UpdateOptions{}); return err }},
		{"UpdateStatus", "object is nil", func() error { _, err := configMaps.UpdateStatus(ctx, nil, metav1.UpdateOptions{}); return err }},
		{"Apply", "object is nil", func() error { _, err := configMaps.Apply(ctx, "a", nil, metav1.ApplyOptions{}); return err }},
		{"ApplyStatus", "object is nil", func() error { _, err := configMaps.ApplyStatus(ctx, "a", nil, metav1.ApplyOptions{}); return err }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
