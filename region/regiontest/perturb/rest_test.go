// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// A loop writes once more long after the last step. What is lost then is repeated too.
func TestLossesDuringTheRestAreRepeated(t *testing.T) {
	named := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	}
	late := perturb.Scenario{
		Servers: func() (map[string]perturb.Server, error) {
			return map[string]perturb.Server{"up": regiontest.NewServer(regiontest.Options{})}, nil
		},
		Loops: []perturb.Loop{{Name: "late", Run: func(ctx context.Context, access perturb.Access) error {
			c, err := client(access, "up")
			if err != nil {
				return err
			}
			for wait := 10 * time.Minute; ; wait = 24 * time.Hour {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return nil
				}
				if _, err := c.Apply(ctx, "late", named("late"), metav1.ApplyOptions{FieldManager: "late"}); err != nil {
					return err
				}
			}
		}}},
		Script: []perturb.Step{{Name: "make a", Do: func(ctx context.Context, access perturb.Access) error {
			c, err := client(access, "up")
			if err != nil {
				return err
			}
			_, err = c.Apply(ctx, "a", named("a"), metav1.ApplyOptions{FieldManager: "user"})
			return err
		}}},
	}
	write := perturb.Point{Loop: "late", Server: "up", Verb: "patch", Resource: "configmaps", Namespace: "default", Name: "late", N: 1}
	a := perturb.Object{Server: "up", Resource: "configmaps", Namespace: "default", Name: "a"}
	perturb.Replay(t, late, perturb.Plan{{Kind: perturb.DeleteBefore, At: write, Of: a}})
	perturb.Replay(t, late, perturb.Plan{{Kind: perturb.Restore, At: write}})
}
