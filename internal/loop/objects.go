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

// ObjectsOptions adjust Objects. The zero value copies everything.
type ObjectsOptions struct {
	// Namespace is the only one to look at; empty: all.
	Namespace string
	// Labels and Fields are selectors in the form that kubectl takes.
	Labels, Fields string
	// Strip leaves out of an object what is not needed, before it is stored. See KeepManager. May be nil.
	Strip func(*unstructured.Unstructured)
	// Packed keeps objects as JSON, a tenth of the memory. Get and List then decode them anew each time, so what they
	// return may be modified.
	Packed bool
	// Note says of an object, after Strip, what Seen returns of it. May be nil.
	Note func(*unstructured.Unstructured) string
	// Changed is called after each change of an object, with its key, also for each object of the first list. It must not
	// block; Queue.Add does not. May be nil.
	Changed func(types.NamespacedName)
	// Appeared is called before Changed with the key of an object that a watch reports and that was not there before. It is not
	// called for what a list has brought. It must not block. May be nil.
	Appeared func(types.NamespacedName)
	// Removed is called before Changed with an object that a watch reports as deleted, or as no longer selected: what it was
	// last. Who reads the copy sees that the object is gone after Removed has returned, and not before. It is not called for an object that a list lacks: that
	// may be the state of a backup. It must not block, and must not read the copy. May be nil.
	Removed func(*unstructured.Unstructured)
	// Listed is called instead of Changed for what a list has brought and not a watch; nil: Changed.
	Listed func(types.NamespacedName)
	// Indexed is for a Changed that keeps an index: it has been told of all that a list brought before Err is nil, not soon
	// after. Whoever works on nothing while Err is not nil looks at everything in Flows then.
	Indexed bool
	// Flows is called after the copy has become fresh and after it has ceased to be: Err tells. It must not block. May be
	// nil.
	Flows func()
}

// Objects is a copy, kept by list and watch, of the objects of one resource in one API server. It is safe for concurrent
// use; reading it does no I/O.
type Objects struct {
	resource  schema.GroupVersionResource
	source    *source
	store     *store
	freshness *freshness
	started   atomic.Bool
}

// NewObjects makes an empty copy of what d has of gvr. It does no I/O and starts nothing; see Start.
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

// ErrNotListed is the Err of Objects whose first list is neither in place nor has failed: nothing is known yet.
var ErrNotListed = errors.New("has not been listed yet")

var errStopped = errors.New("is no longer watched")

// pageSize is how many objects are asked for at once.
const pageSize = 500

// Start keeps the copy until ctx ends, waits for what it started, then returns nil. It goes on through all errors, with a
// back-off of up to 15 seconds. Call it once.
func (o *Objects) Start(ctx context.Context) error {
	if o.started.Swap(true) {
		return fmt.Errorf("%s: Start was called twice", describe(o.resource))
	}
	log := logging.From(ctx).WithValues("resource", describe(o.resource))
	o.freshness.start(log)
	defer o.freshness.stop()
	defer o.source.wait()

	// What reflectors say is said better by freshness.
	silent := logr.Discard()
	reflector := cache.NewReflectorWithOptions(o.source, &unstructured.Unstructured{}, o.store, cache.ReflectorOptions{
		Name: describe(o.resource), TypeDescription: describe(o.resource), Logger: &silent,
	})
	reflector.WatchListPageSize = pageSize
	// Run of reflectors hands errors to handlers that are global and that sleep.
	ctx = logr.NewContext(ctx, silent)
	for pause := minPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		begun := time.Now()
		_ = reflector.ListAndWatchWithContext(ctx) // the source has seen it
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

// The pause between attempts to list and watch doubles, and is up to a half longer at random. An attempt that lasted is
// no failure.
const (
	minPause = 500 * time.Millisecond
	maxPause = 10 * time.Second
	lasting  = time.Minute
)

// Synced is closed when the first list is in place.
func (o *Objects) Synced() <-chan struct{} { return o.store.synced }

// Err says why the copy is not fresh now: it was never listed, the last list or watch failed, or the watch has ended more
// than 5 seconds ago without a new one. It is nil while changes flow.
func (o *Objects) Err() error { return o.freshness.get() }

// Get returns the object of that key. It must not be modified, unless the copy is Packed.
func (o *Objects) Get(key types.NamespacedName) (*unstructured.Unstructured, bool) {
	return o.store.get(key)
}

// Seen returns the Note of the object of that key, and a number that becomes another one whenever the object changes: unlike
// a resourceVersion it is never given out twice in a process. It decodes nothing. Without an object it returns "" and 0.
func (o *Objects) Seen(key types.NamespacedName) (note string, serial uint64) {
	return o.store.seen(key)
}

// List returns all objects by namespace and name. Neither they nor the slice must be modified, unless the copy is Packed.
func (o *Objects) List() []*unstructured.Unstructured { return o.store.list() }

// Keys returns the keys of all objects, in no order. It decodes nothing.
func (o *Objects) Keys() []types.NamespacedName { return o.store.keys() }

// Len is how many objects there are.
func (o *Objects) Len() int { return o.store.len() }

// requests counts requests under way, so that Start can wait for those that a reflector has left behind.
type requests struct {
	mu   sync.Mutex
	wg   sync.WaitGroup
	over bool
}

// begin returns false if there shall be no more requests.
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
