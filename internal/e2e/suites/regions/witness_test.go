// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// witness searches all planes for regions that are Bound in two planes at once.
type witness struct {
	clients map[string]dynamic.Interface // by plane
	before  map[string]map[types.NamespacedName]string
	rounds  int
	saw     int // how often two consecutive rounds found a region Bound, without a change
	twice   []string
	except  []types.NamespacedName // not reported
}

// watched runs a witness until the test ends. It fails the test if a region was Bound in two planes
// at once, unless except lists the region.
func (w *world) watched(t *testing.T, except ...types.NamespacedName) {
	t.Helper()
	seer := &witness{clients: map[string]dynamic.Interface{}, except: except}
	for _, p := range w.planes {
		seer.clients[p.Name()] = planetest.Dynamic(t, p.Config())
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		every := time.NewTicker(250 * time.Millisecond)
		defer every.Stop()
		for ctx.Err() == nil {
			seer.look(ctx)
			select {
			case <-every.C:
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, found := range seer.twice {
			t.Error(found)
		}
		if seer.saw == 0 {
			t.Error("the witness never saw a region that is Bound")
		}
		t.Logf("the witness looked %d times", seer.rounds)
	})
}

// look reads all planes once. A claim with the same resourceVersion in two consecutive rounds had
// the same state during the whole time between these rounds. So if two claims of one region were
// Bound in the two rounds, without a change, they were Bound at one moment: when the first round
// ended.
func (s *witness) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var mu sync.Mutex
	now := map[string]map[types.NamespacedName]string{}
	var reading sync.WaitGroup
	for name, client := range s.clients {
		reading.Go(func() {
			bound, err := boundIn(ctx, client)
			if err != nil {
				return // an unreachable plane serves no claim
			}
			mu.Lock()
			defer mu.Unlock()
			now[name] = bound
		})
	}
	reading.Wait()
	holders := map[types.NamespacedName][]string{}
	for name, bound := range now {
		for key, version := range bound {
			if s.before[name][key] == version {
				holders[key] = append(holders[key], name)
			}
		}
	}
	s.saw += len(holders)
	for key, names := range holders {
		if len(names) > 1 && !slices.Contains(s.except, key) {
			s.twice = append(s.twice, fmt.Sprintf("region %s is Bound in %v at once", key, names))
		}
	}
	s.before = now
	s.rounds++
}

// boundIn returns the Bound RegionClaims of a plane, with their resourceVersions.
func boundIn(ctx context.Context, client dynamic.Interface) (map[types.NamespacedName]string, error) {
	list, err := client.Resource(regionClaims).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	bound := map[types.NamespacedName]string{}
	for _, obj := range list.Items {
		if phaseOf(&obj) == "Bound" {
			bound[types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}] = obj.GetResourceVersion()
		}
	}
	return bound, nil
}
