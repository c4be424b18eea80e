// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// task is one look at one central object.
type task struct {
	*Replicator
	key    types.NamespacedName
	wish   *unstructured.Unstructured
	itself region.PeerName // the peer that is the central plane; empty if none is
	sights []sight
	want   wanted
	leave  func() // gives its place among the workers to another

	// Why it is not brought along, for people.
	reason  v1alpha1.AccountConditionReason
	message string
	acted   bool          // something was done that has yet to show
	failed  bool          // an operation was tried, and came to nothing
	wait    time.Duration // until a deletion is judged
}

// work brings one object along and reports how it stands.
func (r *Replicator) work(ctx context.Context, text string) (again time.Duration, err error) {
	r.places <- struct{}{}
	leave := sync.OnceFunc(func() { <-r.places })
	defer leave()
	key := loop.ParseKey(text)
	if !owns(r.opts.Shard, r.kind.Kind+"/"+text) {
		r.forget(key)
		return 0, nil
	}
	if r.wishes.Err() != nil {
		return 0, nil // what is old proves nothing; its flow is told
	}
	wish, ok := r.wishes.Get(key)
	if !ok {
		r.gone(ctx, key)
		return 0, r.orphans(ctx, key)
	}
	itself, known := r.itself()
	if !known {
		return patience / 10, nil
	}
	t := &task{Replicator: r, key: key, wish: wish, itself: itself, sights: r.look(key), leave: leave}
	if itself != "" && t.keptApart() {
		t.itself = ""
		t.sights = slices.DeleteFunc(t.sights, func(s sight) bool { return s.peer == itself })
	}
	if len(t.sights) == 0 {
		return 0, nil // the directory has no peers yet
	}
	return t.run(ctx)
}

// gone forgets an object that is not in the central plane any more. One that is itself
// a peer's lets it go when no peer has it any longer.
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
	removing := t.wish.GetDeletionTimestamp() != nil
	t.want = wanted{removing: removing}
	if t.itself == "" {
		t.want.origin = t.wish.GetUID()
	}
	if p := t.pausing(t.key); time.Until(p.until) > 0 && !removing && t.pauses(p) {
		return time.Until(p.until), nil
	}
	if err := t.claimed(ctx); err != nil {
		return 0, err
	}
	switch {
	case t.itself != "":
		if err = t.announce(ctx); err != nil {
			return 0, err
		}
		err = t.runInPlace(ctx)
	case removing:
		var gone bool
		if gone, err = t.remove(ctx); gone && err == nil {
			t.forget(t.key)
			done, err := t.release(ctx)
			if done {
				t.opts.Observer.removed(ctx, RemoveEvent{Object: t.object(t.key, t.wish.GetUID())})
			}
			return 0, err
		}
	default:
		err = t.keep(ctx)
	}
	if t.acted && err == nil {
		// The copies of the peers follow, and each calls for the next look.
		t.Replicator.acted(t.key)
		if !removing {
			return settle, nil
		}
		again = settle
	}
	again = max(again, t.wait)
	if t.failed {
		// What it wrote and took back calls for the next look at once.
		digest, _ := t.desired() // an operation was made of it
		t.vain(t.key, digest)
	} else {
		t.settled(t.key)
	}
	if t.itself != "" && t.want.digest == "" {
		return again, err // not the Replicator's business yet
	}
	p := presence(t.key, t.sights, t.want)
	p.UID = t.wish.GetUID()
	p.Reason, p.Message = t.reason, t.message
	if removing && t.itself == "" {
		p.Hold = fanout.RecordedHold(t.wish)
	}
	if err != nil && p.Message == "" {
		p.Message = brief(err.Error())
	}
	t.explain(ctx, &p)
	t.found(ctx, p)
	return again, errors.Join(err, t.report(ctx, t.wish, p))
}

// pauses says whether p holds for the content as it is now, and there is something to wait for: a peer does not have it yet.
func (t *task) pauses(p pausing) bool {
	digest, err := t.desired()
	if err != nil || p.of != "" && p.of != digest {
		return false
	}
	return !presence(t.key, t.sights, wanted{digest: digest, origin: t.want.origin}).Complete()
}

func (t *task) desired() (digest string, err error) {
	if t.itself != "" {
		return t.kind.Digest(t.wish)
	}
	return t.kind.Digest(desired(t.kind, t.wish))
}

// keep brings a central object, whose plane is no peer, to all of them.
func (t *task) keep(ctx context.Context) error {
	want := desired(t.kind, t.wish)
	var err error
	if t.want.digest, err = t.kind.Digest(want); err != nil {
		return err
	}
	wantBare, err := bare(t.kind, want)
	if err != nil {
		return err
	}
	home := primary(t.sights)
	switch {
	case home == nil && t.unclaimed() != "":
		t.conflict("an object of that name was applied in %s and is under no claim: adopt or delete it there", t.unclaimed())
		return nil
	case home == nil && len(silent(t.sights)) > 0:
		// An add needs every peer. To try it would only keep others waiting.
		t.waits("adding it needs every peer")
		return nil
	case home == nil:
		if err := t.hold(ctx); err != nil {
			return err
		}
		err := t.do(ctx, "add", func() (*fanout.Operation, error) {
			if t.opts.Agreed {
				_, err := t.coordinator.Agree(ctx, want, t.add())
				return nil, err
			}
			return t.coordinator.Add(ctx, want, t.add())
		})
		return errors.Join(err, t.takeBack(ctx))
	case home.err != nil:
		t.waits(fmt.Sprintf("its home %s does not answer", home.peer))
		return nil
	case home.copy.Stage == fanoutv1alpha1.StageRemoving || home.copy.Terminating:
		t.conflict("an object of that name is being removed from the peers: it follows when that is gone")
		return nil
	}
	ours := home.copy.Origin == t.wish.GetUID()
	equal := home.copy.Digest == t.want.digest && !home.copy.edited()
	switch {
	case !ours && !equal && home.copy.Bare != wantBare, t.opts.Agreed && !equal && home.copy.Bare != wantBare:
		t.differs(ctx, home.peer, ours)
		return nil
	case t.opts.Agreed && !equal && !ours:
		// It is what was agreed on; whose it is cannot be changed any more.
		t.want.digest = home.copy.Digest
	case equal && !t.lagging(home):
		return t.hold(ctx)
	}
	if err := t.hold(ctx); err != nil {
		return err
	}
	if t.opts.Agreed {
		if !t.lagging(home) {
			return nil
		}
		return t.do(ctx, "add", func() (*fanout.Operation, error) {
			_, err := t.coordinator.Agree(ctx, want, t.add())
			return nil, err
		})
	}
	return t.do(ctx, "update", func() (*fanout.Operation, error) { return t.coordinator.Update(ctx, want, t.add()) })
}

func (t *task) add() fanout.AddOptions { return fanout.AddOptions{FieldManager: t.opts.FieldManager} }

// unclaimed is a peer with an object of the name that is under no claim.
func (t *task) unclaimed() region.PeerName {
	for _, s := range t.sights {
		if s.copy != nil && s.copy.Stage == "" && s.copy.Bad == "" {
			return s.peer
		}
	}
	return ""
}

// lagging says whether a member that answers is behind its home.
func (t *task) lagging(home *sight) bool {
	return slices.ContainsFunc(t.sights, func(s sight) bool {
		return s.err == nil && s.counts() && (s.copy == nil ||
			s.copy.Bad == "" && s.copy.Stage != "" && (s.copy.Stage != fanoutv1alpha1.StageActive || s.copy.Revision < home.copy.Revision))
	})
}

// do carries out an operation and says what came of it. One that asks peers which do not
// answer waits for the most part, and keeps no other object waiting.
func (t *task) do(ctx context.Context, action string, operation func() (*fanout.Operation, error)) error {
	if t.anySilent() {
		t.leave()
	}
	op, err := operation()
	t.opts.Observer.replicated(ctx, ReplicateEvent{Kind: t.kind.GroupKind(), Key: t.key, Action: action, Err: err})
	if held, ok := errors.AsType[*fanout.HeldError](err); ok {
		t.conflict("%s", brief(held.Error()))
		return nil
	}
	if err != nil {
		t.failed = true
		t.message = brief(err.Error())
		return err
	}
	t.acted = true
	if op != nil && op.State == fanout.Committed {
		if behind := op.Peers.Err(); behind != nil {
			t.message = brief(behind.Error())
		}
	}
	return nil
}

// conflict says that another's object has the name.
func (t *task) conflict(format string, args ...any) {
	t.reason, t.message = v1alpha1.AccountReasonConflict, fmt.Sprintf(format, args...)
}

// waits says that it cannot be brought along as long as peers are silent.
func (t *task) waits(message string) {
	t.reason, t.message = v1alpha1.AccountReasonPeersUnknown, message
}
