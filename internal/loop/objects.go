// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/internal/logging"
)

// ObjectsOptions configure Objects. The zero value caches all objects unchanged.
type ObjectsOptions struct {
	// Namespace is the only namespace to cache; empty means all.
	Namespace string
	// Labels and Fields are selectors in the form that kubectl accepts.
	Labels, Fields string
	// Strip removes unneeded fields from an object before it is stored. See KeepManager. May be
	// nil.
	Strip func(*unstructured.Unstructured)
	// Packed stores objects as JSON, which takes a tenth of the memory. Get and List then decode
	// them each time, so their results may be modified.
	Packed bool
	// Note computes the note that Seen returns for an object. It is called after Strip. May be nil.
	Note func(*unstructured.Unstructured) string
	// Changed is called after each change of an object, with its key, and for each object of the
	// first list. It must not block; it may call Queue.Add, which does not block. May be nil.
	Changed func(types.NamespacedName)
	// Appeared is called before Changed, with the key of an object that a watch reports and that
	// was not in the cache. It is not called for objects of a list. It must not block. May be nil.
	Appeared func(types.NamespacedName)
	// Removed is called before Changed with the last state of an object that a watch reports as
	// deleted, or as no longer selected. Readers of the cache miss the object only after Removed
	// has returned. It is not called for an object that a list lacks: the list may be the state of
	// a backup. It must not block and must not read the cache. May be nil.
	Removed func(*unstructured.Unstructured)
	// Listed is called instead of Changed for changes that a list shows; nil means Changed.
	Listed func(types.NamespacedName)
	// Indexed makes the cache call Listed for all changes of a list before Err becomes nil, instead
	// of after. That suits a Listed that updates an index. A loop that pauses while Err is not nil
	// must then read all objects again in Flows.
	Indexed bool
	// Flows is called after the cache has become fresh and after it has become stale, as Err then
	// shows, and after a NotFound has shown that the API server does not serve the type. It must
	// not block. May be nil.
	Flows func()
}

// Objects is a cache, kept by list and watch, of the objects of one resource in one API server. It
// is safe for concurrent use; reading it does no I/O.
type Objects struct {
	resource  schema.GroupVersionResource
	source    *source
	store     *store
	freshness *freshness
	started   atomic.Bool
}

// NewObjects returns an empty cache of gvr in d. It does no I/O and starts no goroutine; see Start.
func NewObjects(d dynamic.Interface, gvr schema.GroupVersionResource, opts ObjectsOptions) *Objects {
	if opts.Listed == nil {
		opts.Listed = opts.Changed
	}
	f := &freshness{name: describe(gvr), changed: opts.Flows, err: fmt.Errorf("%s: %w", describe(gvr), ErrNotListed)}
	s := &store{opts: opts, entries: map[types.NamespacedName]entry{}, synced: make(chan struct{}), listed: f.listed}
	return &Objects{
		resource: gvr, store: s, freshness: f,
		source: &source{client: d.Resource(gvr).Namespace(opts.Namespace), name: describe(gvr), opts: opts, freshness: f},
	}
}

func describe(gvr schema.GroupVersionResource) string { return gvr.GroupResource().String() }

// ErrNotListed is the Err of Objects before the first list has succeeded or failed.
var ErrNotListed = errors.New("has not been listed yet")

var errStopped = errors.New("is no longer watched")

// pageSize is the number of objects per page of a list.
const pageSize = 500

// Start keeps the cache until ctx ends, waits for its goroutines, and returns nil. It retries all
// errors, with a backoff of up to 15 seconds. Call it once.
func (o *Objects) Start(ctx context.Context) error {
	if o.started.Swap(true) {
		return fmt.Errorf("%s: Start was called twice", describe(o.resource))
	}
	log := logging.From(ctx).WithValues("resource", describe(o.resource))
	o.freshness.start(log)
	defer o.freshness.stop()
	defer o.source.wait()

	// The reflector's own log lines would repeat those of freshness.
	silent := logr.Discard()
	reflector := cache.NewReflectorWithOptions(o.source, &unstructured.Unstructured{}, o.store, cache.ReflectorOptions{
		Name: describe(o.resource), TypeDescription: describe(o.resource), Logger: &silent,
	})
	reflector.WatchListPageSize = pageSize
	// Do not use the Run method of the reflector: it passes errors to global handlers, which sleep.
	ctx = logr.NewContext(ctx, silent)
	for pause := minPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		begun := time.Now()
		_ = reflector.ListAndWatchWithContext(ctx) // the source reports the error
		if time.Since(begun) > lasting {
			pause = minPause
		}
		select {
		case <-time.After(pause + rand.N(pause/2)):
		case <-ctx.Done():
		}
	}
	return nil
}

// The pause between attempts to list and watch begins with minPause and doubles up to maxPause. A
// random part of up to a half is added. After an attempt of more than a minute the pause is
// minPause.
const (
	minPause = 500 * time.Millisecond
	maxPause = 10 * time.Second
	lasting  = time.Minute
)

// Synced is closed when the first list is in the cache.
func (o *Objects) Synced() <-chan struct{} { return o.store.synced }

// Err returns the reason why the cache is stale: it was never listed, the last list or watch
// failed, the last watch ended more than 5 seconds ago, or Start has ended. It returns nil while
// the cache is fresh.
func (o *Objects) Err() error { return o.freshness.get() }

// Get returns the object of a key, or false if the cache has none. The caller must not modify the
// object, unless the cache is Packed.
func (o *Objects) Get(key types.NamespacedName) (*unstructured.Unstructured, bool) {
	return o.store.get(key)
}

// Seen returns the Note of a key's object, and a serial number that changes whenever the object
// changes. Unlike a resourceVersion, a serial number is never reused in a process. Seen decodes
// nothing. If the cache has no object, it returns "" and 0.
func (o *Objects) Seen(key types.NamespacedName) (note string, serial uint64) {
	return o.store.noteOf(key)
}

// List returns all objects, sorted by namespace and name. The caller must not modify the objects or
// the slice, unless the cache is Packed.
func (o *Objects) List() []*unstructured.Unstructured { return o.store.list() }

// Keys returns the keys of all objects, unsorted. It decodes nothing.
func (o *Objects) Keys() []types.NamespacedName { return o.store.keys() }

// Len returns the number of objects.
func (o *Objects) Len() int { return o.store.len() }

// requests counts running requests, so that Start can wait for those that a reflector abandons.
type requests struct {
	mu   sync.Mutex
	wg   sync.WaitGroup
	over bool
}

// begin registers a request. It returns false if no further requests are allowed.
func (r *requests) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.wg.Add(1)
	}
	return !r.over
}

func (r *requests) wait() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.wg.Wait()
}
