// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// Hold is a removal that a plain delete of a primary requests and that is not committed: the object
// stays in effect in all peers. A Hold also describes guards and replicas whose primary is lost:
// they stay until the primary's peer has rejoined (Coordinator.Comeback), or until a person
// releases them.
type Hold struct {
	// Reason is "Occupied" while the object's namespace holds an object, "Unknown" while a peer
	// cannot report whether the namespace holds one, "TooMany" if Options.RemovalCap was
	// exceeded, until a release, and "Lost" for a guard or replica whose primary is gone without
	// a removal. It is empty until a sweep has judged the request.
	Reason string
	// Message has the details of Reason, such as the objects in the namespace, or the numbers that
	// exceed the cap.
	Message string
	// Since is the deletionTimestamp of the primary; zero if Reason is "Lost".
	Since time.Time
	// Released is set if a person has released the removal.
	Released bool
}

// Hold returns the hold of the removal that a plain delete of obj requests. ok is false if no
// removal of obj is requested. Hold is pure.
func (k Kind) Hold(obj *unstructured.Unstructured) (hold Hold, ok bool) {
	if obj == nil || obj.GetDeletionTimestamp() == nil {
		return Hold{}, false
	}
	view, _, err := k.view(obj)
	if err != nil || !view.Requested() {
		return Hold{}, false
	}
	return RecordedHold(obj), true
}

// RecordedHold returns the hold that is recorded in obj, or the zero value. Unlike Kind.Hold it
// does not check that a removal of obj is requested. It is pure.
func RecordedHold(obj *unstructured.Unstructured) Hold {
	if obj == nil {
		return Hold{}
	}
	held := heldIn(obj)
	hold := Hold{Reason: string(held.Reason), Message: held.Text, Released: released(obj)}
	if at := obj.GetDeletionTimestamp(); at != nil {
		hold.Since = at.UTC()
	}
	return hold
}

// heldIn returns the recorded reason why obj's removal is held.
func heldIn(obj *unstructured.Unstructured) protocol.Held {
	reason, text, ok := strings.Cut(obj.GetAnnotations()[v1alpha1.RemovalHeldAnnotation], ": ")
	if !ok {
		return protocol.Held{}
	}
	return protocol.Held{Reason: protocol.HoldReason(reason), Text: text}
}

// released reports whether a person released the removal of obj: the annotation names obj's UID.
func released(obj *unstructured.Unstructured) bool {
	uid := obj.GetAnnotations()[v1alpha1.ReleaseRemovalAnnotation]
	return uid != "" && uid == string(obj.GetUID())
}

// hold stores in an annotation of obj why the removal of obj is held, or deletes that annotation if
// held is zero.
func hold(obj *unstructured.Unstructured, held protocol.Held) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if held == (protocol.Held{}) {
		delete(annotations, v1alpha1.RemovalHeldAnnotation)
	} else {
		annotations[v1alpha1.RemovalHeldAnnotation] = string(held.Reason) + ": " + held.Text
	}
	obj.SetAnnotations(annotations)
}

// requestText describes the state of a requested removal.
func requestText(o protocol.Object) string {
	switch {
	case o.Released:
		return "it was deleted and released: the next sweep commits its removal"
	case o.Held.Reason == "":
		return "it was deleted, its removal is not committed yet"
	case o.Held.Reason == protocol.HoldTooMany:
		return fmt.Sprintf("it was deleted, its removal is held (%s): %s: release it, or undo the deletion by moving its home", o.Held.Reason, o.Held.Text)
	default:
		return fmt.Sprintf("it was deleted, its removal is held (%s): %s: it continues when that ends or when it is released", o.Held.Reason, o.Held.Text)
	}
}

// ErrNotHeld means that no removal of the object waits for a release: it was not deleted, or its
// removal is committed. Do nothing if the object is to be kept; otherwise call Remove.
var ErrNotHeld = errors.New("no deletion of it waits for a release")

// ReleaseRemoval releases a removal that a plain delete of the primary requested and that is
// held. The next sweep of any coordinator commits the removal, whatever objects the namespace
// holds and however many removals wait. ReleaseRemoval sets the annotation
// v1alpha1.ReleaseRemovalAnnotation on the primary to the primary's UID, so a later object of the
// name is not released. It also releases guards and replicas whose primary is lost, each in its
// own peer: then they are dead, and the name is free. uid, unless empty, must be the UID of the
// primary, or of the lost primary.
//
// ReleaseRemoval returns the hold that it released. It reads all peers, blocks, and is
// idempotent. The error wraps ErrNotHeld if no removal waits, or names the peers that could not
// be read.
func (c *Coordinator) ReleaseRemoval(ctx context.Context, gk schema.GroupKind, key types.NamespacedName, uid types.UID) (Hold, error) {
	kind, err := c.kinds.find(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err != nil {
		return Hold{}, fmt.Errorf("release: %w", err)
	}
	peers, err := c.clusters.peers(ctx)
	if err != nil {
		return Hold{}, err
	}
	s := c.surveyor.lookAt(ctx, kind, key, peers)
	var (
		found  Hold
		any    bool
		errs   []error
		unread []error
	)
	for _, peer := range slices.Sorted(maps.Keys(s.late[key])) {
		m := s.late[key][peer]
		if m.bad != nil {
			continue
		}
		held, ok := kind.Hold(m.obj)
		named := m.obj.GetUID()
		if !ok && s.verdict(key, objectAt{peer, m}) == protocol.VerdictLost {
			of := m.view.Of(protocol.Mode(kind.Mode))
			held, ok, named = Hold{Reason: "Lost", Message: lostText(kind, key, m.view, of)}, true, types.UID(of.UID)
		}
		if !ok || uid != "" && uid != named {
			continue
		}
		found, any = held, true
		if !held.Released {
			errs = append(errs, c.executor.release(ctx, kind, region.PeerName(peer), m.obj))
		}
	}
	if any {
		return found, errors.Join(errs...)
	}
	for _, err := range s.unread {
		unread = append(unread, err)
	}
	return Hold{}, fmt.Errorf("release %s %s: %w", kind.Kind, keyString(key), cmp.Or(errors.Join(unread...), ErrNotHeld))
}

func (x *executor) release(ctx context.Context, kind Kind, peer region.PeerName, obj *unstructured.Unstructured) error {
	key := objectKey(obj)
	op := fmt.Sprintf("release %s %s", kind.Kind, keyString(key))
	conn, err := x.clusters.trusted(ctx, peer)
	if err != nil {
		return explain(peer, op, err)
	}
	client := kind.in(conn, key.Namespace)
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		// The update requires the resourceVersion that was read, so a later object of the name
		// is not released.
		released := obj.DeepCopy()
		annotations := released.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.ReleaseRemovalAnnotation] = string(released.GetUID())
		released.SetAnnotations(annotations)
		_, err := within(ctx, x.opts.CallTimeout, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return client.Update(ctx, released, metav1.UpdateOptions{FieldManager: fieldManager})
		})
		if !apierrors.IsConflict(err) {
			return err
		}
		now, gone := within(ctx, x.opts.CallTimeout, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return client.Get(ctx, key.Name, metav1.GetOptions{})
		})
		switch {
		case gone != nil:
			return gone
		case now.GetUID() != obj.GetUID():
			return ErrNotHeld
		}
		obj = now
		return err
	})
	return explain(peer, op, err)
}
