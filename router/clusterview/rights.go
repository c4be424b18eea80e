// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"context"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// believed is how long a granted right is not asked for again.
const believed = 10 * time.Second

// syncTargets is the type of the objects whose verb sync is the right to use an address.
var syncTargets = v1alpha1.Resource("synctargets")

var accessReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// rights are the rights that regions have granted lately.
type rights struct {
	mu    sync.Mutex
	until map[grant]time.Time
}

// grant is the right of a caller, known by the fingerprint, to sync a SyncTarget in a region.
type grant struct {
	caller string
	address
}

func newRights() *rights { return &rights{until: map[grant]time.Time{}} }

func (r *rights) granted(g grant) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.until[g])
}

func (r *rights) grant(g grant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.until, func(_ grant, until time.Time) bool { return !now.Before(until) })
	r.until[g] = now.Add(believed)
}

// may returns an error if the region does not grant the caller the right to sync the SyncTarget.
func (h *Handler) may(ctx context.Context, id router.Identity, at address) error {
	g := grant{id.Fingerprint(), at}
	if h.rights.granted(g) {
		return nil
	}
	client, err := h.routes.Client(at.region, id)
	if err != nil {
		return err
	}
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"group": syncTargets.Group, "resource": syncTargets.Resource, "name": at.target, "verb": "sync",
		}},
	}}
	answer, err := client.Dynamic().Resource(accessReviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !allowed {
		return apierrors.NewForbidden(syncTargets, at.target, errNoRight)
	}
	h.rights.grant(g)
	return nil
}
