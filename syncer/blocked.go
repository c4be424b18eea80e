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
)

const (
	// retryBlocked is when a place that another client's object has is tried again first. The time doubles up to
	// maxRetryBlocked, and is up to a tenth longer at random.
	retryBlocked    = time.Minute
	maxRetryBlocked = time.Hour
	// maxBlockerWatches bounds the watches of one type: of further objects only the retry notices that they have left.
	maxBlockerWatches = 100
	// lastingWatch is how long a watch must last to be begun again without a try.
	lastingWatch = 10 * time.Minute
)

// blockers are the objects of other clients that have the place of one of ours. No cache of ours shows them: each is watched
// by its name, so that its deletion is noticed at once and the retry can be seldom.
type blockers struct {
	wake    func(key types.NamespacedName)
	changed chan struct{}

	mu       sync.Mutex
	all      map[types.NamespacedName]*blocker
	watching int
}

// blocker is one such object.
type blocker struct {
	key     types.NamespacedName // of our object, as the lane remembers it
	client  metadata.ResourceInterface
	name    string
	uid     types.UID
	version string
	mark    string // a change of it is a reason to try again
	tries   int
	tried   time.Time
	watched bool
	cancel  context.CancelFunc // of its watch; nil without one
}

func newBlockers(wake func(types.NamespacedName)) *blockers {
	return &blockers{wake: wake, changed: make(chan struct{}, 1), all: map[types.NamespacedName]*blocker{}}
}

// met records that obj has the place of our object, and returns when to try again.
func (b *blockers) met(key types.NamespacedName, client metadata.ResourceInterface, obj metav1.Object, mark string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.all[key]
	if at == nil || at.uid != obj.GetUID() {
		b.removeLocked(key)
		at = &blocker{key: key, client: client, name: obj.GetName(), uid: obj.GetUID()}
		b.all[key] = at
	}
	at.version, at.mark, at.tried, at.watched = obj.GetResourceVersion(), mark, time.Now(), at.cancel != nil
	wait := min(maxRetryBlocked, retryBlocked<<min(at.tries, 16))
	at.tries++
	b.tell()
	return wait + rand.N(wait/10)
}

// gone forgets what had the place of our object. It returns whether there was something.
func (b *blockers) gone(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.removeLocked(key)
}

func (b *blockers) removeLocked(key types.NamespacedName) bool {
	at := b.all[key]
	if at == nil {
		return false
	}
	if at.cancel != nil {
		at.cancel()
	}
	delete(b.all, key)
	return true
}

func (b *blockers) tell() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// run watches blockers until ctx ends, and waits for what it started.
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

// begin returns a blocker whose watch is to begin, with the context of the watch; nil: there is none.
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

// follow watches one blocker until a change is a reason to try again. A watch that has lasted begins again at once, another
// one with the next try.
func (b *blockers) follow(ctx context.Context, at *blocker) {
	begun := time.Now()
	again := b.awaitChange(ctx, at)
	b.mu.Lock()
	at.cancel()
	at.cancel = nil
	b.watching--
	at.watched = again || time.Since(begun) < lastingWatch
	b.tell()
	b.mu.Unlock()
	if again {
		b.wake(at.key)
	}
}

// awaitChange returns whether to try again; false: it is not known.
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
				// One that changes all the time is not tried more often than this.
				retry = time.After(time.Until(tried.Add(retryBlocked)))
			default:
				b.mu.Lock()
				at.version = obj.GetResourceVersion()
				b.mu.Unlock()
			}
		}
	}
}

// withContent begins marks that change with the content of an object, not only with our labels and annotations.
const withContent = "content "

// markOf returns of an object in our way what a decision about it depends on.
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

// blocked records that there has the place of our object downstream, and returns when to try again.
func (l *lane) blocked(key types.NamespacedName, there metav1.Object) time.Duration {
	return l.blockers.met(key, l.downMeta(there.GetNamespace()), there, markOf(there, l.syncer.opts.Adopt == AdoptEqual))
}

// retryNow tries again for an object, although nothing of it has changed.
func (l *lane) retryNow(key types.NamespacedName) {
	l.remember(key, func(m *memo) { m.refused = refusal{} })
	l.syncer.add(l.queueKey(key))
}

// blockedFor reports an object that has the place of our object, and holds what was to be written there back.
func (l *lane) blockedFor(ctx context.Context, key types.NamespacedName, there metav1.Object, hash string, reason Reason, message string) time.Duration {
	l.problem(ctx, key, reason, message)
	wait := l.blocked(key, there)
	l.remember(key, func(m *memo) { m.refused = refusal{hash: hash, until: time.Now().Add(wait)} })
	return wait
}
