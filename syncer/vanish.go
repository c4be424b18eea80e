// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// DeletePolicy says what happens if somebody deletes a copy downstream.
type DeletePolicy int

const (
	// RecreateCopy makes it again.
	RecreateCopy DeletePolicy = iota
	// DeleteUpstream deletes the object upstream as well, if the syncer ran when it had the copy and nothing was in doubt:
	// the downstream, asked anew, is the same cluster and does not have it. It counts as a deletion, see DeleteCap. A copy
	// that went while no syncer ran is made again, and so is one of an object that several clusters have.
	DeleteUpstream
)

// copyNote is what is remembered of a copy, with DeleteUpstream only.
type copyNote struct {
	of   types.UID // the object upstream whose copy was there, as it should be
	gone types.UID // the copy that the syncer itself has deleted: that it vanishes says nothing
}

// noteCopyLocked remembers that the copy of an object was there. down is empty if it is another than was ever deleted. The
// caller holds the lock.
func (l *lane) noteCopyLocked(key types.NamespacedName, up, down types.UID) {
	if l.syncer.opts.OnDownstreamDelete != DeleteUpstream || down != "" && l.copies[key].gone == down {
		return
	}
	l.copies[key] = copyNote{of: up}
}

func (l *lane) noteCopy(key types.NamespacedName, u, d *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteCopyLocked(key, u.GetUID(), d.GetUID())
}

// dropCopy forgets the copy of an object, because the syncer itself deletes the one with that UID, or because nothing is
// known of it any more.
func (l *lane) dropCopy(key types.NamespacedName, gone types.UID) {
	if l.syncer.opts.OnDownstreamDelete != DeleteUpstream {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.copies[key] = copyNote{gone: gone}
}

// vanished says whether somebody has deleted the copy of u, so that u is to go.
func (l *lane) vanished(key types.NamespacedName, u *unstructured.Unstructured, shared bool) bool {
	if l.syncer.opts.OnDownstreamDelete != DeleteUpstream || shared {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copies[key].of == u.GetUID()
}

// follow deletes u, whose copy was deleted downstream.
func (l *lane) follow(ctx context.Context, key, place types.NamespacedName, u *unstructured.Unstructured) (again time.Duration, done bool, err error) {
	_, err = l.downMeta(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		l.dropCopy(key, "") // something else has the place now
		return 0, false, nil
	case !apierrors.IsNotFound(err) || isMissingType(err):
		return 0, true, err
	}
	if err := l.syncer.sameDownstream(ctx); err != nil {
		return 0, true, err
	}
	if !l.valve.pass(key, l.one.Len()+l.many.Len()) {
		l.problem(ctx, key, ReasonHeld, "too many deletions at once, by copies that were deleted downstream: they wait for a person to allow them")
		return 0, true, nil
	}
	uid, version, background := u.GetUID(), u.GetResourceVersion(), metav1.DeletePropagationBackground
	err = l.upMeta(key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &background, DryRun: l.syncer.dryRun(),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, true, wrap("delete upstream", err)
	}
	l.problem(ctx, key, "", "")
	l.dropCopy(key, "")
	l.wrote(ctx, WriteDeleteUpstream, key)
	return lag, true, nil
}

// otherCluster is the error of an API server behind which there is another cluster than there was.
func otherCluster(now, before types.UID) error {
	return fmt.Errorf("another cluster answers: kube-system has UID %s there, and had %s", now, before)
}

// sameDownstream fails if it is another cluster that answers now than at the start: what it does not have was not deleted.
func (s *Syncer) sameDownstream(ctx context.Context) error {
	known := s.downUID()
	uid, err := uidOf(ctx, s.down)
	if err == nil && uid != known {
		err = otherCluster(uid, known)
	}
	return wrap("downstream", err)
}
