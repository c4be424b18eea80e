// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/atoll-dev/atoll/internal/loop"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// lane syncs one type. One worker at a time works on one object, both its ways: so nobody has to agree with anybody.
type lane struct {
	syncer *Syncer
	name   string // resource.group
	kind   kind
	rules  rules
	valve  *valve
	// withdrawn are the origins whose copies may be deleted.
	withdrawn withdrawals
	stop      context.CancelFunc

	// one has the upstream objects of this target, many those of several targets, down what the syncer made downstream.
	one, many, down *loop.Objects
	// born has what was born downstream and is to be brought up, raised what was made of it upstream; nil: nothing is.
	born, raised *loop.Objects
	// missed is what a pass was to be made of while one of the first three was not fresh, missedBorn of the other two.
	missed, missedBorn missed
	blockers           *blockers

	mu       sync.Mutex
	plain    bool // the type has no place for our condition
	memos    map[types.NamespacedName]memo
	problems map[types.NamespacedName]Problem
	copies   map[types.NamespacedName]copyNote               // only with DeleteUpstream
	settled  map[types.NamespacedName]seen                   // where a pass has found nothing to do
	rewrites map[types.NamespacedName]map[string][]time.Time // when something was written again, and why
	// rewritten and fromWatch show that another Syncer works for the target.
	rewritten map[part]rewritten
	fromWatch map[types.NamespacedName]bool // places of copies that have just appeared
	stale     time.Time                     // since when a copy is not fresh
	losses    []string                      // by which schemas differ, one line each
	denied    error                         // why a type that is refused cannot be listed

	// unscheduled is what is to be said upstream of pods that find no node, nil if that is not known, and said what is: see
	// Options.Unscheduled.
	unscheduled, said map[types.NamespacedName]string
}

// seen says which state of the copies a pass has seen of one object.
type seen struct{ one, many, down uint64 }

// memo is what is remembered of an object between passes. All of it may be lost: then a request is made that would not
// have been needed.
type memo struct {
	down, up pending
	sent     pending // the last write upstream, whatever of
	refused  refusal // by the downstream
	made     echo
	// statusUp and statusDown are refusals of the status, by the upstream and by the downstream. They are forgotten when
	// another spec goes down.
	statusUp, statusDown refusal
}

// kept is what of m is remembered of a copy that is as it should be.
func (m memo) kept() memo { return memo{up: m.up, statusUp: m.statusUp, statusDown: m.statusDown} }

// echo is what the copies will show of an object that was just made downstream, if nothing else happens.
type echo struct {
	before, up string    // the resourceVersions upstream, before our finalizer and with it
	down       string    // the one downstream
	uid        types.UID // of the object upstream
	until      time.Time
}

// pending is a write that the copy may not show yet.
type pending struct {
	hash   string    // of what was written
	before string    // the resourceVersion in the copy at the time of the write
	after  string    // and what the server answered
	until  time.Time // how long the copy is given to show it
}

// lag is how long a copy is given to show a write.
const lag = 10 * time.Second

func newPending(hash, before, after string) pending {
	return pending{hash: hash, before: before, after: after, until: time.Now().Add(lag)}
}

// awaited returns how long to wait for the copy, which has version, to show the write of hash; 0: no more.
func (p pending) awaited(hash, version string) time.Duration {
	if p.hash != hash {
		return 0
	}
	return p.behind(version)
}

// behind is awaited, of whatever was written.
func (p pending) behind(version string) time.Duration {
	if p.before == p.after || version != p.before {
		return 0
	}
	return max(0, time.Until(p.until))
}

// made says whether version is what the write of hash has made, even if it looks different.
func (p pending) made(hash, version string) bool { return p.hash == hash && p.after == version }

const strayMark = "!"

func newLane(s *Syncer, name string, k kind) *lane {
	l := &lane{
		syncer: s, name: name, kind: k, rules: rulesFor(k.GroupKind(), s.opts.Rules), valve: newValve(s.opts.DeleteCap),
		memos: map[types.NamespacedName]memo{}, problems: map[types.NamespacedName]Problem{},
		settled: map[types.NamespacedName]seen{}, copies: map[types.NamespacedName]copyNote{}, rewrites: map[types.NamespacedName]map[string][]time.Time{}, stale: time.Now(),
	}
	if l.said = map[types.NamespacedName]string{}; s.opts.Unscheduled <= 0 {
		l.unscheduled = map[types.NamespacedName]string{} // what was said when they were counted is removed
	}
	// What of an object does not go down, but for the status as we wrote it, is not kept.
	managers := []string{s.statusManager, s.fieldsManager}
	if slices.ContainsFunc(l.rules, goesUp) {
		managers = append(managers, splitterv1alpha1.Manager) // see bringFieldsUp
	}
	strip := loop.KeepManager(managers...)
	up := func(obj *unstructured.Unstructured) {
		strip(obj)
		dropAnnotations(obj)
	}
	keep := loop.KeepManager(manager, s.statusManager)
	down := func(obj *unstructured.Unstructured) {
		keep(obj)
		dropAnnotations(obj)
		kept := fields(obj, goesUp, l.rules)
		for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
			if v, ok := obj.Object[field]; ok {
				kept[field] = v
			}
		}
		obj.Object = kept
	}
	upstream := func(labels string) *loop.Objects {
		return loop.NewObjects(s.up.Dynamic(), k.GVR, loop.ObjectsOptions{
			Labels: labels, Strip: up, Packed: true, Note: (*unstructured.Unstructured).GetResourceVersion,
			Changed: func(key types.NamespacedName) { s.add(l.queueKey(key)) }, Flows: l.flows,
			Listed:  func(key types.NamespacedName) { s.addBehind(l.queueKey(key)) },
			Removed: func(obj *unstructured.Unstructured) { l.withdrawn.add(obj.GetUID()) },
		})
	}
	l.one = upstream(s.opts.Label + "=" + s.opts.Target)
	l.many = upstream(v1alpha1.StateLabelPrefix + s.opts.Target + "=" + v1alpha1.StateSync)
	l.down = loop.NewObjects(s.down.Dynamic(), k.GVR, loop.ObjectsOptions{
		Labels: ownerLabel + "=" + s.owner, Strip: down, Packed: true, Note: versionAndStatus,
		Changed: func(key types.NamespacedName) { s.add(l.queuePlace(key)) }, Flows: l.flows,
		Listed: func(key types.NamespacedName) { s.addBehind(l.queuePlace(key)) }, Appeared: l.appeared,
	})
	l.blockers = newBlockers(l.retryNow)
	l.watchBorn()
	l.plain = k.Refused != "" // a condition is a write of the status, which may be a power by itself
	return l
}

// versionAndStatus is the resourceVersion, marked if there is a status.
func versionAndStatus(obj *unstructured.Unstructured) string {
	if status, _ := obj.Object["status"].(map[string]any); len(status) > 0 {
		return obj.GetResourceVersion() + " with status"
	}
	return obj.GetResourceVersion()
}

// dropAnnotations leaves out what can be half of an object.
func dropAnnotations(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
}

func (l *lane) copiesOf() []*loop.Objects {
	all := []*loop.Objects{l.one, l.many, l.down}
	if l.kind.Refused != "" {
		all = all[:2]
	}
	switch {
	case l.born == nil:
	case l.kind.Refused != "":
		all = append(all, l.born)
	default:
		all = append(all, l.born, l.raised)
	}
	return all
}

// run keeps the copies until ctx ends.
func (l *lane) run(ctx context.Context) {
	var copies sync.WaitGroup
	for _, o := range l.copiesOf() {
		copies.Go(func() {
			if l.kind.Refused == "" || l.mayRead(ctx, o) {
				_ = o.Start(ctx)
			}
		})
	}
	copies.Go(func() { l.sweep(ctx) })
	copies.Go(func() { l.blockers.run(ctx) })
	copies.Wait()
}

// queueKey is what the queue knows an upstream object by.
func (l *lane) queueKey(key types.NamespacedName) string { return l.name + "|" + loop.KeyText(key) }

// queuePlace is what the queue knows the upstream object by that has this place downstream.
func (l *lane) queuePlace(place types.NamespacedName) string {
	key, ok := l.originAt(place)
	if !ok {
		return l.name + "|" + strayMark + loop.KeyText(place)
	}
	return l.queueKey(key)
}

// originAt returns which upstream object has a place downstream.
func (l *lane) originAt(place types.NamespacedName) (types.NamespacedName, bool) {
	if !l.kind.Namespaced {
		return place, true
	}
	ns, ok := l.syncer.opts.Namespaces.Up(place.Namespace)
	return types.NamespacedName{Namespace: ns, Name: place.Name}, ok
}

// placeOf returns where an upstream object is downstream.
func (l *lane) placeOf(key types.NamespacedName) (types.NamespacedName, error) {
	if !l.kind.Namespaced {
		return key, nil
	}
	ns, err := l.syncer.opts.Namespaces.Down(key.Namespace)
	return types.NamespacedName{Namespace: ns, Name: key.Name}, err
}

// fresh returns why a copy is not up to date. While it is not, nothing is done: what a copy does not have need not be
// absent. Of a type that is refused only the upstream is watched.
func (l *lane) fresh() error {
	if l.kind.Refused != "" {
		l.mu.Lock()
		denied := l.denied
		l.mu.Unlock()
		if denied != nil {
			return denied
		}
		return errors.Join(wrap("upstream", l.one.Err()), wrap("upstream", l.many.Err()))
	}
	return errors.Join(wrap("upstream", l.one.Err()), wrap("upstream", l.many.Err()), wrap("downstream", l.down.Err()))
}

// mayWork returns why nothing may be decided now: a cache is not fresh, or the lease is lost.
func (l *lane) mayWork() error { return errors.Join(l.syncer.lease.err(), l.fresh()) }

// flows looks at all objects when all copies have become fresh, and at what was missed before.
func (l *lane) flows() {
	err := l.fresh()
	l.mu.Lock()
	switch {
	case err == nil:
		l.stale = time.Time{}
	case l.stale.IsZero():
		l.stale = time.Now()
	}
	l.mu.Unlock()
	if l.born != nil && l.bornFresh() == nil {
		l.askForBorn()
		for _, queued := range l.missedBorn.take() {
			l.syncer.addBehind(queued)
		}
	}
	if err != nil {
		return
	}
	l.askForAll()
	for _, queued := range l.missed.take() {
		l.syncer.addBehind(queued)
	}
}

// askForAll asks for a pass over each object of the copies.
func (l *lane) askForAll() {
	for _, o := range []*loop.Objects{l.one, l.many} {
		for _, key := range o.Keys() {
			l.syncer.addBehind(l.queueKey(key))
		}
	}
	for _, place := range l.down.Keys() {
		l.syncer.addBehind(l.queuePlace(place))
	}
}

// askForBorn asks for a pass over each object that was born downstream.
func (l *lane) askForBorn() {
	for _, place := range l.born.Keys() {
		l.queueBorn(place)
	}
	for _, key := range l.raised.Keys() {
		l.syncer.addBehind(l.queueKey(bornKey(key)))
	}
}

// upstream returns an object that is to be synced, and whether it is synced to other targets as well.
func (l *lane) upstream(key types.NamespacedName) (u *unstructured.Unstructured, shared bool) {
	if u, ok := l.one.Get(key); ok {
		return u, false
	}
	u, ok := l.many.Get(key)
	return u, ok
}

func (l *lane) memo(key types.NamespacedName) memo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.memos[key]
}

// remember changes the memo of key.
func (l *lane) remember(key types.NamespacedName, change func(*memo)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.memos[key]
	change(&m)
	if m == (memo{}) {
		delete(l.memos, key)
		return
	}
	l.memos[key] = m
}

// look returns what the copies have of an object, and how long to wait before a pass is of use: 0 for at once, negative
// if there is nothing to do. It decodes nothing: most passes end here, those that our own writes have caused among them.
func (l *lane) look(key, place types.NamespacedName) (now seen, wait time.Duration) {
	var one, many, down string
	one, now.one = l.one.Seen(key)
	many, now.many = l.many.Seen(key)
	down, now.down = l.down.Seen(place)
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.saidLocked(key)
	if said && l.settled[key] == now && now != (seen{}) {
		return now, -1
	}
	up := cmp.Or(one, many)
	if wait := l.memos[key].sent.behind(up); wait > 0 {
		return now, wait // all that we would write would be worked out from what is no more
	}
	made := l.memos[key].made
	if !said || made == (echo{}) || up != made.before && up != made.up || down != "" && down != made.down {
		return now, 0
	}
	if up == made.up && down == made.down {
		l.settleLocked(key, now)
		l.noteCopyLocked(key, made.uid, "")
		delete(l.memos, key)
		return now, -1
	}
	return now, max(0, time.Until(made.until))
}

// settle records that a pass which has seen that has nothing left to do.
func (l *lane) settle(key types.NamespacedName, now seen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settleLocked(key, now)
}

func (l *lane) settleLocked(key types.NamespacedName, now seen) {
	if _, trouble := l.problems[key]; trouble || now == (seen{}) {
		delete(l.settled, key)
		return
	}
	l.settled[key] = now
}

// hadCopy says whether an object had a copy when last there was nothing to do for it.
func (l *lane) hadCopy(key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled[key].down != 0
}

// forget drops what is remembered of an object that is nowhere any more.
func (l *lane) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.memos, key)
	delete(l.settled, key)
	delete(l.rewrites, key)
	delete(l.copies, key)
	delete(l.said, key)
	delete(l.rewritten, part{NamespacedName: key})
	delete(l.rewritten, part{key, true})
}

func (l *lane) downClient(namespace string) dynamic.ResourceInterface {
	return l.syncer.down.Dynamic().Resource(l.kind.GVR).Namespace(namespace)
}

// upMeta and downMeta are for requests of whose answer only the metadata matter.
func (l *lane) upMeta(namespace string) metadata.ResourceInterface {
	return l.syncer.up.Metadata().Resource(l.kind.GVR).Namespace(namespace)
}

func (l *lane) downMeta(namespace string) metadata.ResourceInterface {
	return l.syncer.down.Metadata().Resource(l.kind.GVR).Namespace(namespace)
}

func (l *lane) wrote(ctx context.Context, w Write, key types.NamespacedName) {
	l.syncer.opts.Observer.wrote(ctx, WriteEvent{Write: w, Resource: l.kind.GVR.GroupResource(), Object: key})
}

func cutSubresource(name string) (resource, sub string, ok bool) { return strings.Cut(name, "/") }
