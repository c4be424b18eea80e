// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// reservedNamespaces are prefixes of namespaces that belong to a cluster itself: those of Kubernetes, and those in which a
// syncer is installed, whose ServiceAccount and Secret hold its rights.
var reservedNamespaces = []string{"kube-", installPrefix}

// The types of Secrets that are credentials of a cluster.
const (
	serviceAccountToken = "kubernetes.io/service-account-token"
	bootstrapToken      = "bootstrap.kubernetes.io/token"
	// tokenOf is set on Secrets that hold the credentials of a ServiceAccount, whatever their type.
	tokenOf = "kubernetes.io/service-account.name"
)

func secretType(obj *unstructured.Unstructured) string {
	t, _, _ := unstructured.NestedString(obj.Object, "type")
	return t
}

// stays is part of the report of an object that an earlier release has synced.
const stays = "; an earlier release made a copy downstream, which stays as it is"

// refuses says why an object is not synced, in either direction; "" if it is. key is where it is upstream, place where it
// is downstream. obj is the object where it was born, nil if only its place is known.
func (l *lane) refuses(key, place types.NamespacedName, obj *unstructured.Unstructured) (Reason, string) {
	if l.kind.Refused != "" {
		return ReasonNotPermitted, l.kind.Refused
	}
	if ns := reserved(key.Namespace, place.Namespace); ns != "" {
		return ReasonNotPermitted, "namespace " + ns + " belongs to a cluster itself"
	}
	if ns := reserved(key.Name, place.Name); ns != "" && l.kind.GVR.GroupResource() == namespaces.GroupResource() {
		return ReasonNotPermitted, "namespace " + ns + " belongs to a cluster itself"
	}
	if obj == nil {
		return "", ""
	}
	if why := unsyncable(l.kind.GroupKind(), obj); why != "" {
		return ReasonNotSyncable, why
	}
	if why := isCredential(l.kind.GroupKind(), obj); why != "" {
		return ReasonNotPermitted, why
	}
	if l.syncer.opts.Refuse == nil {
		return "", ""
	}
	if why := l.syncer.opts.Refuse(l.kind.GVR.GroupResource(), obj); why != "" {
		return ReasonNotPermitted, why
	}
	return "", ""
}

// reserved returns the first of the namespaces that belongs to a cluster itself; "" if none does.
func reserved(namespaces ...string) string {
	for _, ns := range namespaces {
		if slices.ContainsFunc(reservedNamespaces, func(prefix string) bool { return strings.HasPrefix(ns, prefix) }) {
			return ns
		}
	}
	return ""
}

// isCredential returns why an object is a credential of a cluster; "" if it is not.
func isCredential(kind schema.GroupKind, obj *unstructured.Unstructured) string {
	if kind != (schema.GroupKind{Kind: "Secret"}) {
		return ""
	}
	_, ofAccount := obj.GetAnnotations()[tokenOf]
	switch {
	case secretType(obj) == bootstrapToken:
		return "a Secret of type " + bootstrapToken + " lets machines join a cluster"
	case ofAccount:
		return "the annotation " + tokenOf + " makes a Secret the credential of a ServiceAccount"
	}
	return ""
}

// found is what the caches have of one object; nil for nothing.
type found struct {
	u, d   *unstructured.Unstructured
	shared bool
}

// keepOut reports an object that is refused. It writes nothing downstream. Upstream it removes our finalizer from an object
// that is being deleted, or is no longer for this cluster, once there is no copy: only a copy makes it wait.
func (l *lane) keepOut(ctx context.Context, key, place types.NamespacedName, now found, reason Reason, why string) (time.Duration, error) {
	l.valve.settle(key)
	u, err := l.originNow(ctx, key, now.u)
	switch {
	case err != nil:
		return 0, err
	case now.u == nil && u != nil && l.selects(u):
		return 0, loop.ErrBehind // the cache of the upstream is behind
	}
	held := u != nil && l.holds(u)
	copied := now.d != nil
	var there metav1.Object
	if held {
		there, err = l.copyOf(ctx, key, place, u.GetUID())
		copied = there != nil
		switch {
		case apierrors.IsForbidden(err):
			l.problem(ctx, key, reason, fmt.Sprintf("%s; an earlier release may have made a copy: %s", why, err))
			return retryRefused, nil
		case err != nil:
			return 0, err
		case !copied && (now.u == nil || u.GetDeletionTimestamp() != nil):
			if err := l.letRefusedGo(ctx, u); err != nil {
				return 0, err
			}
		}
	}
	if now.u == nil && !copied {
		l.problem(ctx, key, "", "")
		l.forget(key)
		return 0, nil
	}
	again := time.Duration(0)
	if copied {
		why += stays
	}
	if copied && held && u.GetDeletionTimestamp() != nil {
		why += ", and the deletion waits for it: delete the copy, permit the type, or stop the syncer and call Detach"
		again = l.blocked(key, there) // the caches of a refused type do not show the copy
	}
	l.problem(ctx, key, reason, why)
	return again, l.showRefused(ctx, key, now)
}

// originNow returns the object upstream: u, or without it the result of a live read, nil if there is none.
func (l *lane) originNow(ctx context.Context, key types.NamespacedName, u *unstructured.Unstructured) (metav1.Object, error) {
	if u != nil {
		return u, nil
	}
	there, err := l.upMeta(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // nothing is there, which is an answer
	case err != nil:
		return nil, err
	}
	return there, nil
}

// copyOf asks the downstream for its copy of the object with that UID, which has our finalizer; nil: there is none.
func (l *lane) copyOf(ctx context.Context, key, place types.NamespacedName, uid types.UID) (metav1.Object, error) {
	there, err := l.downMeta(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // nothing is there, which is an answer
	case err != nil:
		return nil, wrap("look for a copy downstream", err)
	}
	if is := provenanceOf(there, manager, l.syncer.owner).to(key, uid, true); is != copied && is != unknown {
		return nil, nil //nolint:nilnil // another object is there
	}
	return there, nil
}

// letRefusedGo removes the finalizer from an object that has no copy.
func (l *lane) letRefusedGo(ctx context.Context, u metav1.Object) error {
	if left, ok := u.(*metav1.PartialObjectMetadata); ok { // it is no longer for this cluster
		if err := l.clearCondition(ctx, left); err != nil {
			return err
		}
	}
	return l.dropFinalizer(ctx, u)
}

// showRefused writes upstream that an object is refused, if that is asked for and allowed.
func (l *lane) showRefused(ctx context.Context, key types.NamespacedName, now found) error {
	if now.u == nil || now.u.GetDeletionTimestamp() != nil {
		return nil
	}
	err := l.showCondition(ctx, key, now.u, now.shared, false)
	if l.kind.Refused != "" && apierrors.IsForbidden(err) {
		return nil // a syncer need not have rights on types that it refuses
	}
	return err
}

// mayRead waits until objects of a type that is refused may be listed where o reads them; false: ctx has ended first. A
// syncer need not have that right, so it is tried seldom.
func (l *lane) mayRead(ctx context.Context, o *loop.Objects) bool {
	for {
		err := l.probe(ctx, o)
		if !apierrors.IsForbidden(err) {
			l.setDenied(nil)
			return ctx.Err() == nil
		}
		l.setDenied(err)
		select {
		case <-time.After(retryRefused):
		case <-ctx.Done():
			return false
		}
	}
}

// probe lists at most one object where o reads.
func (l *lane) probe(ctx context.Context, o *loop.Objects) error {
	on := l.syncer.up
	if o == l.born {
		on = l.syncer.down
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := on.Metadata().Resource(l.kind.GVR).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

func (l *lane) setDenied(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.denied = err
}
