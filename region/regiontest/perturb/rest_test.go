// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

func named(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
}

// besideA returns a scenario with a user who creates the ConfigMap "a", and with a loop that works on
// ConfigMaps.
func besideA(loop func(context.Context, dynamic.ResourceInterface) error) perturb.Scenario {
	return perturb.Scenario{
		Servers: func() (map[string]perturb.Server, error) {
			return map[string]perturb.Server{"up": regiontest.NewServer(regiontest.Options{})}, nil
		},
		Loops: []perturb.Loop{{Name: "loop", Run: func(ctx context.Context, access perturb.Access) error {
			c, err := client(access, "up")
			if err != nil {
				return err
			}
			return loop(ctx, c)
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
}

// A loop writes ten minutes after its start, when the script has long ended. A fault at this write
// deletes the user's object, or restores the server. The user creates the object again, so the run ends
// in the same state as the undisturbed run.
func TestLossesDuringTheRestAreRepeated(t *testing.T) {
	late := besideA(func(ctx context.Context, c dynamic.ResourceInterface) error {
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
	})
	write := perturb.Point{Loop: "loop", Server: "up", Verb: "patch", Resource: "configmaps", Namespace: "default", Name: "late", N: 1}
	a := perturb.Object{Server: "up", Resource: "configmaps", Namespace: "default", Name: "a"}
	perturb.Replay(t, late, perturb.Plan{{Kind: perturb.DeleteBefore, At: write, Of: a}})
	perturb.Replay(t, late, perturb.Plan{{Kind: perturb.Restore, At: write}})
}

// A loop writes again and again while the user's object is missing. A fault deletes the object. The
// loop comes to rest, because the user creates the object again.
func TestLossesWithoutARestAreRepeated(t *testing.T) {
	restless := besideA(func(ctx context.Context, c dynamic.ResourceInterface) error {
		had := false
		for n := 0; ; n++ {
			_, err := c.Get(ctx, "a", metav1.GetOptions{})
			if err == nil && !had || apierrors.IsNotFound(err) && had {
				obj := named("count")
				obj.Object["data"] = map[string]any{"n": strconv.Itoa(n)}
				if _, err := c.Apply(ctx, "count", obj, metav1.ApplyOptions{FieldManager: "loop"}); err != nil {
					return err
				}
			}
			had = had || err == nil
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
				return nil
			}
		}
	})
	restless.Differ = []perturb.Field{{Resource: "configmaps", Path: "data"}}
	write := perturb.Point{Loop: "loop", Server: "up", Verb: "patch", Resource: "configmaps", Namespace: "default", Name: "count", N: 1}
	a := perturb.Object{Server: "up", Resource: "configmaps", Namespace: "default", Name: "a"}
	perturb.Replay(t, restless, perturb.Plan{{Kind: perturb.DeleteBefore, At: write, Of: a}})
}
