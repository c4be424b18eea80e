// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// task is one reconcile of one central object.
type task struct {
	replicator *Replicator
	key        types.NamespacedName
	object     *unstructured.Unstructured
	itself     region.PeerName // the peer that is the central plane; empty if no peer is, or if keptApart
	observed   []observation
	want       wanted
	leave      func() // frees its place among the workers

	// Why the object cannot be replicated now, for people.
	reason  v1alpha1.AccountConditionReason
	message string
	acted   bool          // something was written that the caches do not show yet
	failed  bool          // an operation was tried and failed
	wait    time.Duration // until a deletion is judged
}

// work reconciles one object and reports its state. text is the object's key in the queue. It returns the time after
// which to requeue the key; 0: only after an event. While a cache is stale, it decides nothing.
func (r *Replicator) work(ctx context.Context, text string) (again time.Duration, err error) {
	r.places <- struct{}{}
	leave := sync.OnceFunc(func() { <-r.places })
	defer leave()
	key := loop.ParseKey(text)
	if !loop.OwnsKey(r.opts.Shard, r.kind.Kind+"/"+text) {
		r.forget(key)
		return 0, nil
	}
	if r.postpone(key) {
		return 0, nil // a stale cache decides nothing
	}
	object, ok := r.objects.Get(key)
	if !ok {
		r.gone(ctx, key)
		return 0, r.orphans(ctx, key)
	}
	itself, known := r.itself()
	if !known {
		return patience / 10, nil
	}
	t := &task{replicator: r, key: key, object: object, itself: itself, observed: r.observe(key), leave: leave}
	if itself != "" && t.keptApart() {
		t.itself = ""
		t.observed = slices.DeleteFunc(t.observed, func(s observation) bool { return s.peer == itself })
	}
	if len(t.observed) == 0 {
		return 0, nil // the directory has no peers yet
	}
	return t.run(ctx)
}

// gone forgets an object that no longer exists in the central plane. If the object was being
// removed, gone calls Observer.Removed: a plane that is itself a peer loses the object only with
// its removal from all peers.
func (r *Replicator) gone(ctx context.Context, key types.NamespacedName) {
	p, known := r.Presence(key)
	r.forget(key)
	if known && p.Removing {
		r.opts.Observer.removed(ctx, RemoveEvent{Object: Object{
			APIVersion: r.kind.Resource.GroupVersion().String(), Kind: r.kind.Kind, NamespacedName: key, UID: p.UID,
		}})
	}
}

func (t *task) run(ctx context.Context) (again time.Duration, err error) {
	removing := t.object.GetDeletionTimestamp() != nil
	t.want = wanted{removing: removing}
	if t.itself == "" {
		t.want.origin = t.object.GetUID()
	}
	if rest := t.pauseLeft(); rest > 0 {
		return rest, nil
	}
	if err := t.claimed(ctx); err != nil {
		return 0, err
	}
	switch {
	case t.itself != "":
		if err = t.announce(ctx); err != nil {
			return 0, err
		}
		err = t.replicate(ctx)
	case removing:
		var gone bool
		if gone, err = t.remove(ctx); gone && err == nil {
			return 0, t.letGo(ctx)
		}
	default:
		err = t.replicate(ctx)
	}
	if t.acted && err == nil {
		// The caches of the peers will show the result, and each event requeues the object.
		t.replicator.acted(t.key)
		if !removing {
			return settle, nil
		}
		again = settle
	}
	again = max(again, t.wait)
	if t.failed {
		// The events of an aborted attempt would requeue the object at once. Wait instead.
		digest, _ := t.replicator.kind.Digest(t.template()) // no error: the operation had the same content
		t.replicator.pauseAfterFailure(t.key, digest)
	} else {
		t.replicator.endPause(t.key)
	}
	if t.itself != "" && t.want.digest == "" {
		return again, err // the Replicator does not report on the object yet
	}
	p := t.presence(ctx, err)
	t.replicator.found(ctx, p)
	return again, errors.Join(err, t.replicator.report(ctx, t.object, p))
}

// pauseLeft returns how long to leave the object alone after the last operation on it. The pause
// ends early when every Active member holds the desired content and is ready with it, or when the
// object is deleted. After a failed operation the pause also ends when the content changes.
func (t *task) pauseLeft() time.Duration {
	p := t.replicator.pausing(t.key)
	left := time.Until(p.until)
	if left <= 0 || t.want.removing {
		return 0
	}
	digest, err := t.replicator.kind.Digest(t.template())
	if err != nil || p.of != "" && p.of != digest {
		return 0
	}
	if presence(t.key, t.observed, wanted{digest: digest, origin: t.want.origin}).Complete() {
		return 0
	}
	return left
}

// presence returns the state to report after a reconcile that returned err.
func (t *task) presence(ctx context.Context, err error) Presence {
	p := presence(t.key, t.observed, t.want)
	p.UID = t.object.GetUID()
	p.Reason, p.Message = t.reason, t.message
	if t.object.GetDeletionTimestamp() != nil && t.itself == "" {
		p.Hold = fanout.RecordedHold(t.object)
	}
	if err != nil && p.Message == "" {
		p.Message = fanout.Message(err)
	}
	t.explain(ctx, &p)
	return p
}

// replicate carries out the plan of a central object.
func (t *task) replicate(ctx context.Context) error {
	p, err := t.plan(ctx)
	if err != nil {
		return err
	}
	t.want.digest, t.want.removing = p.digest, p.removing
	t.reason, t.message = p.reason, p.message
	if p.differs != nil {
		t.differs(ctx, *p.differs)
	}
	if p.finalize {
		if err := t.addFinalizer(ctx); err != nil {
			return err
		}
	}
	return t.apply(ctx, p.action)
}

// plan reads the central object and returns its plan.
func (t *task) plan(ctx context.Context) (plan, error) {
	if t.itself != "" {
		return t.planInPlace(ctx)
	}
	want := t.template()
	digest, err := t.replicator.kind.Digest(want)
	if err != nil {
		return plan{}, err
	}
	content, err := bare(t.replicator.kind, want)
	if err != nil {
		return plan{}, err
	}
	return central{uid: t.object.GetUID(), digest: digest, bare: content, agreed: t.replicator.opts.Agreed, remove: t.removeCommand()}.plan(t.observed), nil
}

// apply carries out an action.
func (t *task) apply(ctx context.Context, a action) error {
	r := t.replicator
	switch a {
	case actionAdd:
		err := t.do(ctx, "add", func() (*fanout.Operation, error) {
			if r.opts.Agreed {
				return r.agree(ctx, t.template())
			}
			return r.coordinator.Add(ctx, t.template(), r.addOptions())
		})
		return errors.Join(err, t.takeBack(ctx))
	case actionAgree:
		return t.do(ctx, "add", func() (*fanout.Operation, error) { return r.agree(ctx, t.template()) })
	case actionUpdate:
		return t.do(ctx, "update", func() (*fanout.Operation, error) {
			if t.itself != "" {
				// The central object is the home. A sweep commits the content that it reads there, and
				// an update would overwrite edits that the cache does not show yet.
				return nil, r.coordinator.SweepObject(ctx, r.kind.GroupKind(), t.key)
			}
			return r.coordinator.Update(ctx, t.template().DeepCopy(), r.addOptions())
		})
	case actionAdopt:
		return t.do(ctx, "adopt", func() (*fanout.Operation, error) {
			return r.coordinator.Adopt(ctx, t.itself, r.kind.GroupKind(), t.key)
		})
	case actionRemove:
		return t.do(ctx, "remove", func() (*fanout.Operation, error) {
			return r.remove(ctx, t.key, fanout.RemoveOptions{UID: t.object.GetUID(), Unreachable: fanout.Forward})
		})
	case actionSweep:
		t.acted = true
		return r.coordinator.SweepObject(ctx, r.kind.GroupKind(), t.key)
	default:
		return nil
	}
}

// agree adds the agreed content to the peers that lack it. There is no single operation to return.
func (r *Replicator) agree(ctx context.Context, want *unstructured.Unstructured) (*fanout.Operation, error) {
	_, err := r.coordinator.Agree(ctx, want, r.addOptions())
	return nil, err
}

func (r *Replicator) addOptions() fanout.AddOptions {
	return fanout.AddOptions{FieldManager: r.opts.FieldManager}
}

// do runs an operation and records its outcome. If a peer is unreachable, the operation spends most
// of its time waiting, so do first frees the task's place among the workers.
func (t *task) do(ctx context.Context, action string, operation func() (*fanout.Operation, error)) error {
	if anyUnreachable(t.observed) {
		t.leave()
	}
	op, err := operation()
	t.replicator.opts.Observer.replicated(ctx, ReplicateEvent{Kind: t.replicator.kind.GroupKind(), Key: t.key, Action: action, Err: err})
	if held, ok := errors.AsType[*fanout.HeldError](err); ok {
		t.reason, t.message = v1alpha1.AccountReasonConflict, fanout.Message(held)
		t.failed = true // the attempt reserved the name in some peers, and their events requeue the object
		return nil
	}
	if err != nil {
		t.failed = true
		t.message = fanout.Message(err)
		return err
	}
	t.acted = true
	if op != nil && op.State == fanout.Committed {
		if behind := op.Peers.Err(); behind != nil {
			t.message = fanout.Message(behind)
		}
	}
	return nil
}
