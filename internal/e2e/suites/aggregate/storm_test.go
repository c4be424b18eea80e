// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/aggregate"
)

const (
	compaction = 10 * time.Second // longer than a list and the start of the next watch take on a busy machine
	calm       = 2 * time.Second  // time between two faults
	settle     = 90 * time.Second
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// site is a region: a plane, a network to it that can be cut, and a writer that writes while the
// plane responds.
type site struct {
	*plane.Plane
	key    region.Key
	net    breaker
	member aggregate.Member
	own    dynamic.ResourceInterface // the writer's client, which bypasses the breaker
}

// storm is the state of TestStorm.
type storm struct {
	t        *testing.T
	sites    []*site
	set      *aggregate.Members
	served   *served // the same regions over HTTP
	consumer consumer
	mu       sync.Mutex
	steps    map[region.Key][]aggregate.Step
}

// TestStorm runs a merged list, a merged watch and an informer, while a writer changes the objects
// of each region, and faults hit one region after the other. In the end the objects of the watch
// and of the informer's cache equal the objects of the regions that are members then. Each event of
// the merged watch fits the events before it: an object is added while the consumer does not have
// it, and is modified or deleted under the same UID. While one region is cut off or down, events of
// the other regions arrive.
func TestStorm(t *testing.T) {
	s := newStorm(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	writing, calmDown := context.WithCancel(ctx)
	for i, site := range s.sites {
		running.Go(func() { site.write(writing, uint64(i)) })
	}
	api, err := aggregate.New(s.set, aggregate.Options{Qualify: true, Timeout: 10 * time.Second, Observer: &aggregate.Observer{Followed: s.followed}})
	require.NoError(t, err)
	reader := api.Reader("default", configMaps)
	running.Go(func() {
		if err := s.consumer.run(ctx, reader); !errors.Is(err, context.Canceled) {
			t.Errorf("the merged watch ended: %v", err)
		}
	})
	example := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	informer := cache.NewSharedIndexInformer(reader, example, 0, cache.Indexers{})
	running.Go(func() { informer.RunWithContext(ctx) })

	overHTTP := s.served.informers(ctx, t, &running)

	s.misfortunes()
	s.served.restartInTurn(t, overHTTP, s.sites[3])

	calmDown()
	time.Sleep(calm) // let writes in progress end
	present := []*site{s.sites[1], s.sites[2], s.sites[3]}
	planetest.Eventually(t, settle, "the merged watch is equal to the regions", func(ctx context.Context) error {
		return differ(s.truth(ctx, present, "app=storm"), s.consumer.view())
	})
	planetest.Eventually(t, settle, "the informer is equal to the regions", func(ctx context.Context) error {
		view := map[string]string{}
		for _, o := range informer.GetStore().List() {
			if u, ok := o.(*unstructured.Unstructured); ok {
				view[u.GetName()] = text(u)
			}
		}
		return differ(s.truth(ctx, present, ""), view)
	})
	for kind, informer := range overHTTP {
		planetest.Eventually(t, settle, "the "+kind+" informer over HTTP is equal to the regions", func(ctx context.Context) error {
			want := s.truth(ctx, present, "")
			if !informer.whole {
				for name, value := range want {
					want[name], _, _ = strings.Cut(value, " ") // the UID
				}
			}
			return differ(want, informer.view())
		})
		require.Empty(t, informer.mistakes(), kind)
	}
	require.Empty(t, s.consumer.mistakes())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, site := range s.sites[:3] {
		require.Contains(t, s.steps[site.key], aggregate.StepVerify, "%s was never interrupted", site.key)
	}
	t.Logf("events by region: %v", s.consumer.counts())
	t.Logf("objects in the end: %d", len(s.consumer.view()))
}

func newStorm(t *testing.T) *storm {
	s := &storm{t: t, set: &aggregate.Members{}, steps: map[region.Key][]aggregate.Step{}}
	var options []plane.Options
	for _, name := range plane.Names(4) {
		options = append(options, plane.Options{Name: name, APIServerFlags: []string{"--etcd-compaction-interval=" + compaction.String()}})
	}
	for _, p := range planetest.NewAll(t, options...) {
		site := &site{Plane: p, key: region.Key{Provider: "loodse", Name: p.Name()}}
		site.member = aggregate.Member{Region: site.key, Client: planetest.Dynamic(t, site.net.wrap(p.Config()))}
		planetest.Apply(t, p, readers)
		site.own = planetest.Dynamic(t, p.Config()).Resource(configMaps).Namespace("default")
		s.sites = append(s.sites, site)
	}
	s.served = newServed(t)
	s.join(0, 1, 2)
	return s
}

// join makes these sites the members.
func (s *storm) join(indices ...int) {
	s.t.Helper()
	var members []aggregate.Member
	for _, i := range indices {
		members = append(members, s.sites[i].member)
	}
	require.NoError(s.t, s.set.Put(members...))
	s.served.join(s.t, s.sites, indices)
}

func (s *storm) followed(_ context.Context, e aggregate.FollowEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[e.Region] = append(s.steps[e.Region], e.Step)
}

// misfortunes injects the faults one after the other, so that a failure shows its cause.
func (s *storm) misfortunes() {
	t, ctx := s.t, s.t.Context()
	a, b, c := s.sites[0], s.sites[1], s.sites[2]
	s.flows("all", a, b, c)

	t.Log("a is cut off until its history is compacted")
	a.net.set(true)
	s.flows("a is cut off", b, c)
	time.Sleep(3 * compaction)
	a.net.set(false)
	s.flows("a is back", a, b, c)

	t.Log("b is cut off for a moment")
	b.net.set(true)
	b.net.set(false)
	s.flows("b is back", a, b, c)

	t.Log("b is killed and restarted")
	require.NoError(t, b.Kill(ctx))
	s.flows("b is down", a, c)
	require.NoError(t, b.Restart(ctx))
	s.flows("b is back", a, b, c)

	t.Log("c is restored from an older state")
	require.NoError(t, c.Save(ctx))
	s.flows("c was saved", a, b, c)
	require.NoError(t, c.Restore(ctx))
	s.flows("c was restored", a, b, c)

	t.Log("d joins, a leaves")
	s.join(0, 1, 2, 3)
	s.flows("d joined", a, b, c, s.sites[3])
	s.join(1, 2, 3)
	s.flows("a left", b, c, s.sites[3])
}

// flows waits until the consumer has received new events of each of these sites.
func (s *storm) flows(when string, sites ...*site) {
	s.t.Helper()
	s.served.restart(s.t)
	time.Sleep(calm)
	before := s.consumer.counts()
	planetest.Eventually(s.t, settle, when+": events go on", func(context.Context) error {
		now := s.consumer.counts()
		for _, site := range sites {
			if now[site.key] <= before[site.key] {
				return fmt.Errorf("no event of %s", site.key)
			}
		}
		return nil
	})
}

// write changes objects until ctx ends. It does not retry failed writes.
func (s *site) write(ctx context.Context, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for ctx.Err() == nil {
		name := fmt.Sprintf("o%d", rng.IntN(30))
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "labels": map[string]any{"app": "storm"}},
			"data": map[string]any{"value": fmt.Sprint(rng.Uint64())},
		}}
		if rng.IntN(4) == 0 {
			_ = s.own.Delete(call, name, metav1.DeleteOptions{}) // the object may be missing, or the plane unreachable
		} else if _, err := s.own.Create(call, o, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
			_, _ = s.own.Update(call, o, metav1.UpdateOptions{}) // the write may conflict, or the plane be unreachable
		}
		cancel()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// truth lists the objects that the planes hold.
func (s *storm) truth(ctx context.Context, sites []*site, selector string) map[string]string {
	all := map[string]string{}
	for _, site := range sites {
		list, err := site.own.List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return map[string]string{"error": err.Error()}
		}
		for i := range list.Items {
			all[list.Items[i].GetName()+"@"+site.key.String()] = text(&list.Items[i])
		}
	}
	return all
}

func differ(want, got map[string]string) error {
	if d := cmp.Diff(want, got); d != "" {
		return errors.New(d)
	}
	return nil
}
