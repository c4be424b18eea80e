// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/atoll-dev/atoll/internal/backoff"
)

const (
	// retryBlocked is the delay of the first retry while an object of another client has the namespace and name that
	// our object needs. The delay doubles up to maxRetryBlocked, plus random jitter of up to a tenth.
	retryBlocked    = time.Minute
	maxRetryBlocked = time.Hour
	// maxBlockerWatches bounds the watches of one type. Without a watch, only the retry notices that a blocker is
	// gone.
	maxBlockerWatches = 100
	// lastingWatch is how long a watch must have lasted to be restarted at once when it ends. A shorter watch is
	// restarted with the next retry.
	lastingWatch = 10 * time.Minute
)

// blockers are the objects for whose deletion or change the reconciles of our objects wait. Most of them are objects
// of other clients that have the namespace and name which an object of ours needs. No cache has a blocker, since it
// lacks our label or its type is refused. So the syncer watches each blocker by its name: it notices the deletion at
// once, and can retry rarely.
type blockers struct {
	wake    func(of ref)
	changed chan struct{}

	mu       sync.Mutex
	all      map[ref]*blocker
	watching int
}

// blocker is the object for which the reconcile of one object of ours waits.
type blocker struct {
	of      ref // our object
	client  metadata.ResourceInterface
	name    string
	uid     types.UID
	version string
	mark    string // the parts of the blocker's state that decide about a retry, see markOf
	tries   int
	tried   time.Time
	watched bool
	cancel  context.CancelFunc // ends the watch; nil without a watch
}

func newBlockers(wake func(ref)) *blockers {
	return &blockers{wake: wake, changed: make(chan struct{}, 1), all: map[ref]*blocker{}}
}

// recordBlocker records obj as the blocker of our object, and returns the retry delay. client can watch obj, and mark
// is the result of markOf for obj.
func (b *blockers) recordBlocker(of ref, client metadata.ResourceInterface, obj metav1.Object, mark string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.all[of]
	if at == nil || at.uid != obj.GetUID() {
		b.removeLocked(of)
		at = &blocker{of: of, client: client, name: obj.GetName(), uid: obj.GetUID()}
		b.all[of] = at
	}
	at.version, at.mark, at.tried, at.watched = obj.GetResourceVersion(), mark, time.Now(), at.cancel != nil
	at.tries++
	wait := backoff.After(at.tries, retryBlocked, maxRetryBlocked)
	b.notify()
	return wait + rand.N(wait/10)
}

// gone drops the blocker of our object. It reports whether our object had a blocker.
func (b *blockers) gone(of ref) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.removeLocked(of)
}

func (b *blockers) removeLocked(of ref) bool {
	at := b.all[of]
	if at == nil {
		return false
	}
	if at.cancel != nil {
		at.cancel()
	}
	delete(b.all, of)
	return true
}

func (b *blockers) notify() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// run watches blockers until ctx ends, and waits for the goroutines that it started.
func (b *blockers) run(ctx context.Context) {
	var watches sync.WaitGroup
	defer watches.Wait()
	for {
		for at, watchCtx := b.begin(ctx); at != nil; at, watchCtx = b.begin(ctx) {
			watches.Go(func() { b.follow(watchCtx, at) })
		}
		select {
		case <-ctx.Done():
			return
		case <-b.changed:
		}
	}
}

// begin marks one more blocker as watched, and returns the blocker and the context for its watch. It returns nil if
// every blocker is marked already, or if maxBlockerWatches watches run.
func (b *blockers) begin(ctx context.Context) (*blocker, context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.all {
		if at.watched || b.watching == maxBlockerWatches {
			continue
		}
		watchCtx, cancel := context.WithCancel(ctx)
		at.cancel, at.watched = cancel, true
		b.watching++
		return at, watchCtx
	}
	return nil, nil
}

// follow watches one blocker. It queues our object when the blocker has changed in a way that makes a retry
// worthwhile. A watch that ends by itself is restarted at once if it lasted for lastingWatch, otherwise with the
// next retry.
func (b *blockers) follow(ctx context.Context, at *blocker) {
	begun := time.Now()
	again := b.awaitChange(ctx, at)
	b.mu.Lock()
	at.cancel()
	at.cancel = nil
	b.watching--
	at.watched = again || time.Since(begun) < lastingWatch
	b.notify()
	b.mu.Unlock()
	if again {
		b.wake(at.of)
	}
}

// awaitChange returns true when the blocker was deleted or replaced, or its mark has changed. It returns false if
// the watch ends first.
func (b *blockers) awaitChange(ctx context.Context, at *blocker) bool {
	b.mu.Lock()
	version, mark, tried := at.version, at.mark, at.tried
	b.mu.Unlock()
	events, err := at.client.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + at.name, ResourceVersion: version, TimeoutSeconds: new(int64(maxRetryBlocked.Seconds())),
	})
	if err != nil {
		return false
	}
	defer events.Stop()
	changes := events.ResultChan()
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-retry:
			return true
		case event, open := <-changes:
			if (!open || event.Type == watch.Error) && retry == nil {
				return false
			}
			if !open {
				changes = nil
				continue
			}
			obj, ok := event.Object.(metav1.Object)
			switch {
			case !ok:
			case event.Type == watch.Deleted, obj.GetUID() != at.uid:
				return true
			case retry == nil && markOf(obj, strings.HasPrefix(mark, withContent)) != mark:
				// A blocker that keeps changing causes one retry per retryBlocked at most.
				retry = time.After(time.Until(tried.Add(retryBlocked)))
			default:
				b.mu.Lock()
				at.version = obj.GetResourceVersion()
				b.mu.Unlock()
			}
		}
	}
}

// withContent is the prefix of marks that change with the content of an object, and not only with our label and
// annotations.
const withContent = "content "

// markOf returns those parts of a blocker's state that decide whether a retry can succeed: our marks on the
// blocker and, if content is true, its generation (or its resourceVersion, if it has no generation).
func markOf(obj metav1.Object, content bool) string {
	annotations := obj.GetAnnotations()
	mark := strings.Join([]string{obj.GetLabels()[ownerLabel], annotations[originAnnotation], annotations[uidAnnotation]}, " ")
	switch {
	case !content:
		return mark
	case obj.GetGeneration() > 0:
		return withContent + strconv.FormatInt(obj.GetGeneration(), 10) + " " + mark
	}
	return withContent + obj.GetResourceVersion() + " " + mark
}

// blockedBy records the downstream object present as the blocker of our object, and returns the retry delay.
func (r *syncedType) blockedBy(of ref, present metav1.Object) time.Duration {
	return r.blockers.recordBlocker(of, r.down.meta(present.GetNamespace()), present, markOf(present, r.syncer.opts.Adopt == AdoptEqual))
}

// reportBlocked reports that present has the namespace and name that our downstream object needs. It returns the retry
// delay. The syncer does not write the desired state with the given hash before the delay has passed or present
// changes.
func (r *syncedType) reportBlocked(ctx context.Context, of ref, present metav1.Object, hash string, reason Reason, message string) time.Duration {
	r.report(ctx, of, reason, message)
	wait := r.blockedBy(of, present)
	r.records.update(of, func(d *detail) { d.writes.rejected = rejection{hash: hash, until: time.Now().Add(wait)} })
	return wait
}
