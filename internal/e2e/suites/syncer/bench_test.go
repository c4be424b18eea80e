// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/syncer"
)

const (
	// concurrency is the number of concurrent writers, of the syncer and of the baselines.
	concurrency = 16
	// costRounds is the number of parts in which the objects are written. The baselines and the
	// syncer alternate, since the load of the machine varies.
	costRounds = 5
)

// cost is the cost of writing objects: whole is measured from the beginning, writes from the end of
// the first write.
type cost struct {
	objects       int
	whole, writes span
}

// span is a wall time and the CPU time that this process used meanwhile. The planes are other
// processes.
type span struct{ wall, cpu time.Duration }

func (c *cost) add(other cost) {
	c.objects += other.objects
	c.whole = span{c.whole.wall + other.whole.wall, c.whole.cpu + other.whole.cpu}
	c.writes = span{c.writes.wall + other.writes.wall, c.writes.cpu + other.writes.cpu}
}

// rate is in objects per second, perThousand in CPU seconds per 1000 objects.
func (c *cost) rate(s span) float64        { return float64(c.objects) / s.wall.Seconds() }
func (c *cost) perThousand(s span) float64 { return s.cpu.Seconds() / float64(c.objects) * 1000 }

// moment is a time and the CPU time that this process had used by then.
type moment struct {
	at  time.Time
	cpu time.Duration
}

func now(t *testing.T) moment {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return moment{time.Now(), time.Duration(u.Utime.Nano() + u.Stime.Nano())}
}

func (m moment) until(end moment) span { return span{end.at.Sub(m.at), end.cpu - m.cpu} }

// everything calls write for each of n objects, with concurrent workers, and returns the cost.
func everything(t *testing.T, n int, write func(ctx context.Context, i int) error) cost {
	t.Helper()
	work, errs := make(chan int), make(chan error, n)
	var workers sync.WaitGroup
	var once sync.Once
	var first moment
	begun := now(t)
	for range concurrency {
		workers.Go(func() {
			for i := range work {
				if err := write(t.Context(), i); err != nil {
					errs <- err
				}
				once.Do(func() { first = now(t) })
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	workers.Wait()
	end := now(t)
	require.Empty(t, errs)
	return cost{objects: n, whole: begun.until(end), writes: first.until(end)}
}

// deployment returns the i-th object to write.
func deployment(namespace string, i int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": fmt.Sprintf("d-%05d", i), "namespace": namespace},
		"spec": map[string]any{
			"replicas": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"app": "a"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}}, "spec": map[string]any{
				"containers": []any{map[string]any{"name": "c", "image": "registry.example/a:1", "ports": []any{map[string]any{"containerPort": int64(80)}},
					"env": []any{map[string]any{"name": "A", "value": "b"}}, "resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "32Mi"}}}},
			}},
		},
	}}
}

// createIn, applyTo and touch return functions that write the i-th object: createIn creates the
// object with labels, applyTo applies the object, and touch writes a finalizer on the object.
func createIn(s *side, labels map[string]string) func(context.Context, int) error {
	client := s.api.Dynamic().Resource(deployments).Namespace(s.namespace)
	return func(ctx context.Context, i int) error {
		obj := deployment(s.namespace, i)
		obj.SetLabels(labels)
		_, err := client.Create(ctx, obj, metav1.CreateOptions{})
		return err
	}
}

func applyTo(s *side) func(context.Context, int) error {
	client := s.api.Dynamic().Resource(deployments).Namespace(s.namespace)
	return func(ctx context.Context, i int) error {
		obj := deployment(s.namespace, i)
		_, err := client.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "bare"})
		return err
	}
}

func touch(s *side) func(context.Context, int) error {
	client := s.api.Dynamic().Resource(deployments).Namespace(s.namespace)
	return func(ctx context.Context, i int) error {
		_, err := client.Patch(ctx, deployment("", i).GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.org/bare"]}}`),
			metav1.PatchOptions{FieldManager: "bare"})
		return err
	}
}

func inTurn(writes ...func(context.Context, int) error) func(context.Context, int) error {
	return func(ctx context.Context, i int) error {
		for _, write := range writes {
			if err := write(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestCost compares a syncer with three bare loops that make the minimal requests for the same
// objects. The first creates them downstream. The second also puts a finalizer on each upstream
// object beforehand, as the syncer must. The third puts the finalizer and applies the objects
// downstream instead of creating them, which equals the syncer's requests. ATOLL_OBJECTS is the
// number of objects. The test fails unless the syncer makes exactly two writes for each object; the
// times are only logged.
func TestCost(t *testing.T) {
	n := ctltest.Count(t, "ATOLL_OBJECTS", 150) / costRounds
	planes := planetest.Shared(t, 2)
	sides := func() (up, down *side) {
		namespace := planetest.Namespace(t, planes...)
		return newSide(t, planes[0], namespace), newSide(t, planes[1], namespace)
	}
	var synced, creates, both, applies cost
	turns := []func(){
		func() {
			_, down := sides()
			creates.add(everything(t, n, createIn(down, nil)))
		},
		func() {
			up, down := sides()
			everything(t, n, createIn(up, nil))
			both.add(everything(t, n, inTurn(touch(up), createIn(down, nil))))
		},
		func() {
			up, down := sides()
			everything(t, n, createIn(up, nil))
			applies.add(everything(t, n, inTurn(touch(up), applyTo(down))))
		},
		func() {
			w := &world{}
			w.up, w.down = sides()
			everything(t, n, createIn(w.up, map[string]string{"workloads.kcp.io/cluster": w.up.namespace}))
			synced.add(w.startToRest(t, n))
			w.stop()
			require.Len(t, w.written(), 2*n)
		},
	}
	for range costRounds {
		for _, turn := range turns {
			turn()
		}
		turns = slices.Concat(turns[1:], turns[:1])
	}
	t.Logf("%d Deployments, %d workers, %d rounds", synced.objects, concurrency, costRounds)
	t.Logf("from the first write: %.0f objects/s, %.2f CPU s per 1000; from the start: %.0f objects/s, %.2f CPU s per 1000",
		synced.rate(synced.writes), synced.perThousand(synced.writes), synced.rate(synced.whole), synced.perThousand(synced.whole))
	for _, bare := range []struct {
		name string
		cost cost
	}{{"creates", creates}, {"puts a finalizer and creates", both}, {"puts a finalizer and applies", applies}} {
		ratio := func(ours, theirs span) string {
			return fmt.Sprintf("%.0f %% of the rate, %.1f times the CPU", 100*theirs.wall.Seconds()/ours.wall.Seconds(), ours.cpu.Seconds()/theirs.cpu.Seconds())
		}
		t.Logf("a bare loop that %s: %.0f objects/s, %.2f CPU s per 1000; the syncer has %s, with its start %s", bare.name,
			bare.cost.rate(bare.cost.writes), bare.cost.perThousand(bare.cost.writes), ratio(synced.writes, bare.cost.writes), ratio(synced.whole, bare.cost.whole))
	}
}

// startToRest starts a syncer of Deployments. It waits until all n Deployments are downstream and
// in the syncer's caches, and returns the cost.
func (w *world) startToRest(t *testing.T, n int) cost {
	t.Helper()
	begun := now(t)
	w.start(t, syncer.Options{
		Workers: concurrency, Discovery: time.Minute,
		Types: func(gr schema.GroupResource) bool { return gr == deployments.GroupResource() },
	})
	planetest.Eventually(t, 10*time.Minute, "all is synced", func(context.Context) error {
		for _, s := range w.Status().Types {
			if s.Resource == deployments && s.Reason == "" && s.Err == nil && s.Upstream == n && s.Downstream == n {
				return nil
			}
		}
		return fmt.Errorf("%d writes for %d objects", w.count(), n)
	})
	end := now(t)
	w.quiet(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil {
		return cost{objects: n, whole: begun.until(end)}
	}
	end.at = w.last // the test only polls the caches, so it notices the end late
	return cost{objects: n, whole: begun.until(end), writes: w.first.until(end)}
}

// count returns the number of writes.
func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.writes)
}

// quiet waits until the syncer stops writing.
func (w *world) quiet(t *testing.T) {
	t.Helper()
	known := -1
	planetest.Eventually(t, long, "the syncer rests", func(ctx context.Context) error {
		before := known
		known = w.count()
		if before == known {
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		return fmt.Errorf("%d writes so far", known)
	})
}
