// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
)

const long = 90 * time.Second

// side is one of the two control planes, with the test's namespace. The SyncTarget has the name of
// the namespace, so that successive tests on the same planes do not sync each other's objects.
type side struct {
	t         *testing.T
	plane     *plane.Plane
	api       region.API
	namespace string
	target    string
}

// global returns the side for cluster-wide objects.
func (s *side) global() *side {
	g := *s
	g.namespace = ""
	return &g
}

// world is an upstream, a downstream that runs Pods, and a syncer between them.
type world struct {
	up, down *side
	*syncer.Syncer
	stop func()

	mu     sync.Mutex
	writes []string
	first  *moment // first write
	last   time.Time
}

func newWorld(t *testing.T, opts syncer.Options) *world {
	t.Helper()
	up, down := planetest.Shared(t, 1)[0], planetest.SharedPods(t, 1)[0]
	namespace := planetest.Namespace(t, up) // the syncer creates it downstream
	w := &world{up: newSide(t, up, namespace), down: newSide(t, down, namespace)}
	w.start(t, opts)
	return w
}

func newSide(t *testing.T, p *plane.Plane, namespace string) *side {
	t.Helper()
	api, err := region.APIFor(p.Config())
	require.NoError(t, err)
	return &side{t: t, plane: p, api: api, namespace: namespace, target: namespace}
}

// start runs a syncer until the end of the test or until stop is called.
func (w *world) start(t *testing.T, opts syncer.Options) {
	t.Helper()
	opts.Target, opts.Discovery = w.up.namespace, cmp.Or(opts.Discovery, 2*time.Second)
	opts.Observer = &syncer.Observer{Wrote: func(_ context.Context, e syncer.WriteEvent) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.last = time.Now()
		if w.first == nil {
			w.first = new(now(t))
		}
		w.writes = append(w.writes, fmt.Sprintf("%s %s %s", e.Write, e.Resource, e.Object))
	}}
	s, err := syncer.New(w.up.api, w.down.api, opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	w.Syncer = s
	w.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(func() {
		defer w.stop()
		if t.Failed() {
			for _, s := range w.Status().Types {
				for _, p := range s.Problems {
					t.Logf("%s %s: %s: %s", s.Resource.Resource, p.Object, p.Reason, p.Message)
				}
			}
		}
	})
}

// written returns the writes of the syncer since the last call.
func (w *world) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.writes
	w.writes, w.first = nil, nil
	return all
}

// create creates an object from YAML, labelled for the target, in the test's namespace.
func (s *side) create(gvr schema.GroupVersionResource, manifest string) {
	s.t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(s.t, yaml.Unmarshal([]byte(manifest), &obj.Object))
	obj.SetLabels(map[string]string{"workloads.kcp.io/cluster": s.target})
	_, err := s.api.Dynamic().Resource(gvr).Namespace(s.namespace).Create(s.t.Context(), obj, metav1.CreateOptions{FieldManager: "user"})
	require.NoError(s.t, err)
}

// make creates an object unchanged.
func (s *side) make(ctx context.Context, gvr schema.GroupVersionResource, obj *unstructured.Unstructured) error {
	_, err := s.api.Dynamic().Resource(gvr).Namespace(s.namespace).Create(ctx, obj, metav1.CreateOptions{FieldManager: "user"})
	return err
}

func (s *side) get(ctx context.Context, gvr schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	return s.api.Dynamic().Resource(gvr).Namespace(s.namespace).Get(ctx, name, metav1.GetOptions{})
}

func (s *side) patch(gvr schema.GroupVersionResource, name, patch string, subresources ...string) {
	s.t.Helper()
	_, err := s.api.Dynamic().Resource(gvr).Namespace(s.namespace).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "somebody"}, subresources...)
	require.NoError(s.t, err)
}

func (s *side) delete(gvr schema.GroupVersionResource, name string) {
	s.t.Helper()
	background := metav1.DeletePropagationBackground
	require.NoError(s.t, s.api.Dynamic().Resource(gvr).Namespace(s.namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
}

// has waits until an object has the values at the given paths; "" means absent, "*" any value.
func (s *side) has(gvr schema.GroupVersionResource, name string, want map[string]string) {
	s.t.Helper()
	var last error
	planetest.Eventually(s.t, long, fmt.Sprintf("%s %s in %s", gvr.Resource, name, s.plane.Name()), func(ctx context.Context) error {
		obj, err := s.get(ctx, gvr, name)
		if ctx.Err() != nil {
			return last
		}
		if last = err; err != nil {
			return err
		}
		for path, value := range want {
			v, _, _ := unstructured.NestedFieldNoCopy(obj.Object, strings.Split(path, ".")...)
			if got := strings.TrimPrefix(fmt.Sprint(v), "<nil>"); got != value && (value != "*" || got == "") {
				last = fmt.Errorf("%s is %q, want %q; status %v", path, got, value, obj.Object["status"])
				return last
			}
		}
		return nil
	})
}

// lacks waits until the object does not exist.
func (s *side) lacks(gvr schema.GroupVersionResource, name string) {
	s.t.Helper()
	planetest.Eventually(s.t, long, fmt.Sprintf("no %s %s in %s", gvr.Resource, name, s.plane.Name()), func(ctx context.Context) error {
		obj, err := s.get(ctx, gvr, name)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it is there, with finalizers %v", obj.GetFinalizers())
	})
}

// rest calls restFor with two seconds.
func (w *world) rest(t *testing.T, types []kind) map[string]string {
	t.Helper()
	return w.restFor(t, 2*time.Second, types)
}

// restFor waits until the syncer has written nothing, and no synced object has changed, for the
// time still. It returns the resourceVersions of all objects, by side, type and name.
func (w *world) restFor(t *testing.T, still time.Duration, types []kind) (versions map[string]string) {
	t.Helper()
	var last error // the result of the previous attempt
	planetest.Eventually(t, long+still, "all rests", func(ctx context.Context) error {
		w.written()
		before, err := w.versions(ctx, types)
		if err != nil {
			return errors.Join(err, last)
		}
		select {
		case <-time.After(still): // inactivity can only be observed over time
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		}
		versions, err = w.versions(ctx, types)
		switch writes := w.written(); {
		case err != nil:
			return errors.Join(err, last)
		case len(writes) > 0:
			last = fmt.Errorf("the syncer has written %v", writes)
		case !maps.Equal(before, versions):
			last = fmt.Errorf("before %v, now %v", before, versions)
		default:
			last = nil
		}
		return last
	})
	return versions
}

func (w *world) versions(ctx context.Context, types []kind) (map[string]string, error) {
	versions := map[string]string{}
	for _, s := range []*side{w.up, w.down} {
		for _, k := range types {
			list, err := s.api.Dynamic().Resource(k.gvr).Namespace(s.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for _, obj := range list.Items {
				versions[s.plane.Name()+" "+k.gvr.Resource+" "+obj.GetName()] = obj.GetResourceVersion()
			}
		}
	}
	return versions, nil
}

// reads waits until the syncer's caches of all types are synced. Before that the syncer writes
// nothing, so a time without writes would show nothing.
func (w *world) reads(t *testing.T, types []kind) {
	t.Helper()
	planetest.Eventually(t, long, "all is read", func(context.Context) error {
		read := map[schema.GroupResource]bool{}
		for _, s := range w.Status().Types {
			read[s.Resource.GroupResource()] = s.Reason == "" && s.Err == nil
		}
		for _, k := range types {
			if !read[k.gvr.GroupResource()] {
				return fmt.Errorf("%s are not", k.gvr.Resource)
			}
		}
		return nil
	})
}

// still returns the time for which no object may be written at rest: ATOLL_REST, or 10 seconds.
func still(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ATOLL_REST")
	if text == "" {
		return 10 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "ATOLL_REST")
	return d
}
