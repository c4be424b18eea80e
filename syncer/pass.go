// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// soon is when a pass is made again where no event tells.
const soon = time.Second

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// pass brings one object up to date on both sides. key is where it is upstream.
func (l *lane) pass(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	if err := l.missed.stale(l.queueKey(key), l.mayWork); err != nil {
		return l.syncer.putOff(err)
	}
	place, err := l.placeOf(key)
	if err != nil {
		if u, _ := l.upstream(key); u != nil {
			l.problem(ctx, key, ReasonNamespace, err.Error())
		} else {
			l.problem(ctx, key, "", "")
		}
		return 0, nil // until the object changes
	}
	defer l.looked(place)
	now, wait := l.look(key, place)
	if wait != 0 {
		return max(wait, 0), nil
	}
	at := l.withdrawn.now()
	u, shared := l.upstream(key)
	d, _ := l.down.Get(place)
	if u != nil {
		l.withdrawn.drop(u.GetUID(), at)
		before := u.GetResourceVersion()
		defer func() {
			if after := u.GetResourceVersion(); after != before {
				l.remember(key, func(m *memo) { m.sent = newPending("", before, after) })
			}
		}()
	}
	reason, why := l.refuses(key, place, u)
	switch {
	case reason != "":
		again, err = l.keepOut(ctx, key, place, found{u: u, d: d, shared: shared}, reason, why)
	case u == nil && d == nil:
		l.problem(ctx, key, "", "")
		l.valve.settle(key)
		l.forget(key)
		err = l.letGo(ctx, key)
	case u == nil:
		again, err = l.removeOrphan(ctx, key, place, d)
	case u.GetDeletionTimestamp() != nil:
		again, err = l.removeWith(ctx, u, d, place)
	default:
		again, err = l.sync(ctx, u, d, place, shared)
		if !l.has(key, ReasonHeld) {
			l.valve.settle(key)
		}
		if err == nil {
			err = l.showCondition(ctx, key, u, shared, false)
		}
		if err == nil {
			err = l.sayUnscheduled(ctx, key, u)
		}
	}
	switch {
	case transient(err):
		return 0, loop.ErrBehind
	case apierrors.IsForbidden(err):
		l.problem(ctx, key, ReasonForbidden, err.Error())
	}
	if err == nil && again == 0 {
		l.settle(key, now)
	}
	return again, wrap(fmt.Sprintf("sync %s %s", l.name, key), err)
}

// transient says whether err only means that a copy was behind.
func transient(err error) bool { return apierrors.IsConflict(err) && len(conflicts(err)) == 0 }

// sync brings an object down and its status up.
func (l *lane) sync(ctx context.Context, u, d *unstructured.Unstructured, place types.NamespacedName, shared bool) (time.Duration, error) {
	key := loop.KeyOf(u)
	if d != nil {
		switch l.relation(d, u, l.holds(u)) {
		case copied:
		case preceded: // a new object begins anew
			return l.remove(ctx, key, d)
		case misplaced:
			l.problem(ctx, key, ReasonCollision, fmt.Sprintf("%s downstream is the copy of %s", place, originOf(d)))
			return 0, nil
		case unknown:
			l.problem(ctx, key, ReasonCollision, howToMark(place, key, u.GetUID(), l.syncer.owner))
			return 0, nil
		case foreign:
			l.problem(ctx, key, ReasonForeign, l.notOurs(place))
			return 0, nil
		}
	}
	if d == nil && finished(l.kind.GroupKind(), u) {
		l.problem(ctx, key, "", "")
		return 0, nil
	}
	if d == nil && l.vanished(key, u, shared) {
		if again, done, err := l.follow(ctx, key, place, u); done || err != nil {
			return again, err
		}
	}
	l.syncer.namespaces().synced(key.Namespace)
	known := fields(u, goesUp, l.rules)
	w, err := l.desired(u, d, place)
	switch {
	case errors.Is(err, Skip):
		l.problem(ctx, key, "", "")
		return 0, nil
	case err != nil:
		l.problem(ctx, key, ReasonTransform, err.Error())
		return 0, nil // until the object changes
	}
	upEcho, err := l.addFinalizer(ctx, u)
	if err != nil {
		return 0, err
	}
	if again, done, err := l.bringDown(ctx, key, d, w, upEcho); !done || err != nil {
		return again, err
	}
	l.noteCopy(key, u, d)
	if !l.has(key, ReasonStatusRefused) {
		l.problem(ctx, key, "", "")
	}
	if err := l.showCondition(ctx, key, u, shared, true); err != nil {
		return 0, err
	}
	if !shared {
		if err := l.bringFieldsUp(ctx, key, u, d, known); err != nil {
			return 0, err
		}
	}
	down, err := l.bringStatusDown(ctx, key, u, d)
	if err != nil {
		return 0, err
	}
	up, err := l.bringUp(ctx, key, u, d, shared)
	if err != nil {
		return 0, err
	}
	l.showRefusal(ctx, key)
	if down > 0 && up > 0 {
		return min(down, up), nil
	}
	return max(down, up), nil
}
