// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

// Each call with a missing argument returns an error that names the argument, and does not panic.
func TestArguments(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // ends a call that would block for ever
	defer cancel()
	log, err := wal.Open(t.TempDir()+"/log", wal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	c, err := fanout.New(region.Fixed(), log, fanout.Options{})
	require.NoError(t, err)
	kind := fanout.ServiceClusters()
	gk, none := kind.GroupKind(), types.NamespacedName{}
	var nilObject *unstructured.Unstructured
	var nilTyped *regionv1alpha1.ServiceCluster
	object := func(call string, try func(fanout.Object) error) []argument {
		return []argument{
			{call + " nil", "object is nil", func() error { return try(nil) }},
			{call + " nil Unstructured", "object is nil", func() error { return try(nilObject) }},
			{call + " nil ServiceCluster", "object is nil", func() error { return try(nilTyped) }},
			{call + " empty Unstructured", "object", func() error { return try(&unstructured.Unstructured{}) }},
		}
	}
	rows := []argument{
		{"New Directory", "directory is nil", func() error { _, err := fanout.New(nil, log, fanout.Options{}); return err }},
		{"New nil Ring", "directory is nil", func() error { _, err := fanout.New((*region.Ring)(nil), log, fanout.Options{}); return err }},
		{"New log", "log is nil", func() error { _, err := fanout.New(region.Fixed(), nil, fanout.Options{}); return err }},
		{"New nil File", "log is nil", func() error { _, err := fanout.New(region.Fixed(), (*wal.File)(nil), fanout.Options{}); return err }},
		{"New nil Log", "log is nil", func() error { _, err := fanout.New(region.Fixed(), (*kubelog.Log)(nil), fanout.Options{}); return err }},
		{"Remove kind", "kind", func() error {
			_, err := c.Remove(ctx, schema.GroupKind{}, types.NamespacedName{Name: "a"}, fanout.RemoveOptions{})
			return err
		}},
		{"Remove name", "name", func() error { _, err := c.Remove(ctx, gk, none, fanout.RemoveOptions{}); return err }},
		{"Adopt name", "name", func() error { _, err := c.Adopt(ctx, "a", gk, none); return err }},
		{"Adopt peer", "peer is empty", func() error {
			_, err := c.Adopt(ctx, "", gk, types.NamespacedName{Namespace: "a", Name: "a"})
			return err
		}},
		{"Move", "name", func() error { _, err := c.Move(ctx, gk, none, "a", fanout.MoveOptions{}); return err }},
		{"ReleaseRemoval", "name", func() error { _, err := c.ReleaseRemoval(ctx, gk, none, "uid"); return err }},
		{"SweepObject", "name", func() error { return c.SweepObject(ctx, gk, none) }},
		{"ExplainName", "name", func() error { _, err := c.ExplainName(ctx, gk, none); return err }},
		{"Join", "peer is empty", func() error { _, err := c.Join(ctx, ""); return err }},
		{"Comeback", "peer is empty", func() error { _, err := c.Comeback(ctx, ""); return err }},
		{"Leave", "peer is empty", func() error { _, err := c.Leave(ctx, ""); return err }},
		{"ForceRemove", "peer is empty", func() error { _, err := c.ForceRemove(ctx, "", fanout.ForceRemoveOptions{}); return err }},
		{"Abort", "operation is empty", func() error { _, err := c.Abort(ctx, "", fanout.AbortOptions{}); return err }},
		{"Resume", "operation is empty", func() error { _, err := c.Resume(ctx, ""); return err }},
		{"Explain", "operation is empty", func() error { _, err := c.Explain(ctx, ""); return err }},
		{"Outcome", "operation is empty", func() error { _, err := c.Outcome(ctx, ""); return err }},
		{"Describe", "is not an operation", func() error { _, err := fanout.Describe(wal.Entry{}); return err }},
		{"Describe other data", "has no action", func() error { _, err := fanout.Describe(wal.Entry{Data: []byte("{}")}); return err }},
		{"Content", "object is nil", func() error { _, err := kind.Content(nil); return err }},
		{"Digest", "object is nil", func() error { _, err := kind.Digest(nil); return err }},
		{"State", "object is nil", func() error { _, err := kind.State(nil); return err }},
	}
	rows = append(rows, object("Add", func(o fanout.Object) error { _, err := c.Add(ctx, o, fanout.AddOptions{}); return err })...)
	rows = append(rows, object("Update", func(o fanout.Object) error { _, err := c.Update(ctx, o, fanout.AddOptions{}); return err })...)
	rows = append(rows, object("Agree", func(o fanout.Object) error { _, err := c.Agree(ctx, o, fanout.AddOptions{}); return err })...)
	rows = append(rows, object("Plan", func(o fanout.Object) error { _, err := c.Plan(ctx, o, fanout.AddOptions{}); return err })...)
	for _, tc := range rows {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
	require.NotPanics(t, func() {
		_, ok := kind.Hold(nil)
		require.False(t, ok)
		require.Zero(t, fanout.RecordedHold(nil))
	})
}

// argument is a call with a missing argument.
type argument struct {
	call, want string
	try        func() error
}
