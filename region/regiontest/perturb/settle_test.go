// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// toggler returns a scenario with a loop that writes the ConfigMap "a" once, or every ten minutes
// without end if seed is even. With seed 3, Holds returns an error.
func toggler(seed uint64) Scenario {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	return Scenario{
		Servers: func() (map[string]Server, error) {
			return map[string]Server{"here": regiontest.NewServer(regiontest.Options{})}, nil
		},
		Loops: []Loop{{Name: "toggler", Run: func(ctx context.Context, access Access) error {
			c, err := dynamic.NewForConfig(access("here"))
			if err != nil {
				return err
			}
			objects := c.Resource(configMaps).Namespace("default")
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
			if _, err := objects.Create(ctx, o, metav1.CreateOptions{}); err != nil {
				return err
			}
			for ctx.Err() == nil && seed%2 == 0 {
				time.Sleep(10 * time.Minute)
				_, _ = objects.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"at":"`+time.Now().String()+`"}}`), metav1.PatchOptions{})
			}
			<-ctx.Done()
			return ctx.Err()
		}}},
		Holds: func(context.Context, Access) error {
			if seed == 3 {
				return errors.New("three")
			}
			return nil
		},
	}
}

func TestSettleNamesTheSeeds(t *testing.T) {
	report := settle(t, 1, 4, toggler)
	require.Equal(t, 4, report.Runs)
	var seeds []uint64
	for _, f := range report.Failures {
		seeds = append(seeds, f.Seed)
	}
	require.Equal(t, []uint64{2, 3, 4}, seeds)
	require.ErrorContains(t, report.Failures[0].Err, "no rest for 1h0m0s in 24h0m0s")
	require.ErrorContains(t, report.Failures[1].Err, "Scenario.Holds fails: three")
	again := settle(t, 3, 1, toggler)
	require.Equal(t, 1, again.Runs)
	require.ErrorContains(t, again.Failures[0].Err, "Scenario.Holds fails: three")
	require.Empty(t, Settle(t, 1, 1, toggler).Failures)
}

// Always is called for heartbeats, too, which a loop may write at rest. With seed 2 it rejects the
// sixth heartbeat, which is the last one of the run, and the run fails.
func TestAlwaysJudgesHeartbeats(t *testing.T) {
	beats := func(seed uint64) Scenario {
		s := toggler(2)
		s.Beats = func(p Point) bool { return p.Verb == "patch" }
		s.Always = func(_ context.Context, w Write, _ Access) error {
			if seed == 2 && w.Verb == "patch" && w.N == 6 {
				return errors.New("six")
			}
			return nil
		}
		return s
	}
	report := settle(t, 1, 2, beats)
	require.Len(t, report.Failures, 1)
	require.Equal(t, uint64(2), report.Failures[0].Seed)
	require.ErrorContains(t, report.Failures[0].Err, "after toggler patch configmaps default/a at here #6: Scenario.Always fails: six")
}
