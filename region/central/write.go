// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// writing is the last written status. The cache may not have it yet.
type writing struct {
	version string // of the cached object that it was derived from
	status  masterv1alpha1.PeerStatus
}

// withWritten returns p with the last written status, if the cache does not have that status yet.
func (w *writing) withWritten(p *masterv1alpha1.Peer) *masterv1alpha1.Peer {
	if w.version != p.ResourceVersion {
		return p
	}
	next := *p
	next.Status = w.status
	return &next
}

// write applies status if it differs from that of before. If the write budget is used up, it returns how long to wait.
func (p *Peers) write(ctx context.Context, r *record, before *masterv1alpha1.Peer, obj *unstructured.Unstructured, status masterv1alpha1.PeerStatus, now time.Time) (time.Duration, error) {
	if equality.Semantic.DeepEqual(status, before.Status) {
		return 0, nil
	}
	if wait := r.budget.Take(now); wait > 0 {
		return wait, nil
	}
	desired, err := manifest(before, status)
	if err != nil {
		return 0, err
	}
	if _, err := loop.Apply(ctx, p.plane.Dynamic().Resource(peerResource), obj, desired, FieldManager, "status"); err != nil {
		return 0, err
	}
	r.written = writing{version: before.ResourceVersion, status: status}
	if e := eventOf(before, status); e != nil {
		p.opts.Observer.changed(ctx, *e)
	}
	return 0, nil
}

// manifest returns the object to apply. Its UID restricts the write to this Peer object.
func manifest(p *masterv1alpha1.Peer, status masterv1alpha1.PeerStatus) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	desired := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	desired.SetAPIVersion(masterv1alpha1.GroupVersion.String())
	desired.SetKind("Peer")
	desired.SetName(p.Name)
	desired.SetUID(p.UID)
	return desired, nil
}

func reasonIn(status masterv1alpha1.PeerStatus, kind masterv1alpha1.PeerConditionType) masterv1alpha1.PeerConditionReason {
	if c := meta.FindStatusCondition(status.Conditions, string(kind)); c != nil {
		return masterv1alpha1.PeerConditionReason(c.Reason)
	}
	return ""
}

// eventOf returns the event for an Observer, or nil if Ready has not changed.
func eventOf(before *masterv1alpha1.Peer, status masterv1alpha1.PeerStatus) *ReadyEvent {
	was := meta.FindStatusCondition(before.Status.Conditions, string(masterv1alpha1.PeerConditionReady))
	is := meta.FindStatusCondition(status.Conditions, string(masterv1alpha1.PeerConditionReady))
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	e := &ReadyEvent{Peer: region.PeerName(before.Name), UID: before.UID, Status: is.Status, Reason: is.Reason, Message: is.Message}
	if was == nil {
		e.Before = metav1.ConditionUnknown
	} else {
		e.Before = was.Status
	}
	return e
}

// The write budget of one object, for statuses that flap.
const (
	budgetSize     = 20
	budgetInterval = 5 * time.Second
)

func newBudget() loop.Budget { return loop.NewBudget(budgetSize, budgetInterval) }

// jitter returns d, extended by up to a fifth.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/5+1) }
