// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

var (
	rolesResource    = rbacv1.SchemeGroupVersion.WithResource("roles")
	bindingsResource = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
	peerSetsResource = fanoutv1alpha1.GroupVersion.WithResource("peersets")
)

// access is the outcome of ensureAccess: the state of an Account's Roles and RoleBindings in one
// peer.
type access struct {
	foreign     []string // objects of other clients that already have the names of the Account's objects
	refused     error    // why the peer rejected requests for Roles or RoleBindings
	noNamespace bool     // nothing was written, because the namespace is being deleted
}

// ensureAccess creates and updates the Roles and RoleBindings of account, and deletes those of
// roles and subjects that the Account no longer has. fresh is true if the namespace was just
// created and so is empty. The access reports other clients' objects, and requests that the peer
// rejected: a Forbidden list or delete, or a create or update that is Forbidden, Invalid or a
// BadRequest. The error is any other failure.
func ensureAccess(ctx context.Context, c *region.Conn, account *unstructured.Unstructured, rights Rights, fresh bool) (access, error) {
	var a access
	roles, bindings := rights.grants(account)
	for _, step := range []struct {
		resource schema.GroupVersionResource
		want     []*unstructured.Unstructured
	}{{rolesResource, roles}, {bindingsResource, bindings}} {
		client := c.Dynamic().Resource(step.resource).Namespace(account.GetName())
		have := map[string]*unstructured.Unstructured{}
		if !fresh {
			found, err := client.List(ctx, metav1.ListOptions{LabelSelector: Label + "=" + account.GetName()})
			if apierrors.IsForbidden(err) {
				a.refused = errors.Join(a.refused, err)
				continue
			}
			if err != nil {
				return a, failed(c, "list "+step.resource.Resource+" of account "+account.GetName(), err)
			}
			for i := range found.Items {
				if isGrant(&found.Items[i]) {
					have[found.Items[i].GetName()] = &found.Items[i]
				}
			}
		}
		if err := a.apply(ctx, client, have, step.want); err != nil {
			return a, failed(c, "make "+step.resource.Resource+" of account "+account.GetName(), err)
		}
	}
	return a, nil
}

// isGrant reports whether a labelled object has a name that an Account's Roles and RoleBindings
// have. Other labelled objects belong to other clients.
func isGrant(obj *unstructured.Unstructured) bool {
	return slices.ContainsFunc(accountRoles, func(role v1alpha1.AccountRole) bool { return obj.GetName() == RoleName(role) })
}

// apply writes each object of want that differs from the object of its name in have, the Account's
// objects of one resource in the peer. Then it deletes the objects in have that are not in want. It
// modifies have, and records in a the rejected writes and the objects of other clients.
func (a *access) apply(ctx context.Context, client dynamic.ResourceInterface, have map[string]*unstructured.Unstructured, want []*unstructured.Unstructured) error {
	for _, w := range want {
		err := ensure(ctx, client, have[w.GetName()], w, FieldManager)
		delete(have, w.GetName())
		switch {
		case errors.Is(err, errForeign):
			a.foreign = append(a.foreign, strings.ToLower(w.GetKind())+" "+w.GetName())
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			a.refused = errors.Join(a.refused, err)
		case err != nil:
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		switch err := discard(ctx, client, have[name]); {
		case apierrors.IsForbidden(err):
			a.refused = errors.Join(a.refused, err)
		case err != nil:
			return err
		}
	}
	return nil
}

var errForeign = errors.New("it existed before and lacks the Account's labels")

// ensure writes w if have, the peer's object of this name, differs from w. If have is nil, ensure
// creates w rather than applying it, because a server-side apply would take over an object that
// another client has created meanwhile. If the peer then has an object of this name with all labels
// of w, Atoll created that object, and ensure updates it. If the object lacks a label, ensure
// returns errForeign.
func ensure(ctx context.Context, client dynamic.ResourceInterface, have, w *unstructured.Unstructured, manager string) error {
	if have == nil {
		_, err := client.Create(ctx, w, metav1.CreateOptions{FieldManager: manager})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		labelled, err := client.List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(w.GetLabels()).String()})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(labelled.Items, func(o unstructured.Unstructured) bool { return o.GetName() == w.GetName() })
		if i < 0 {
			return errForeign
		}
		have = &labelled.Items[i]
	}
	if !drifted(have, w) {
		return nil
	}
	if !equality.Semantic.DeepEqual(have.Object["roleRef"], w.Object["roleRef"]) {
		// A roleRef is immutable: replace the binding.
		if err := discard(ctx, client, have); err != nil {
			return err
		}
		return ensure(ctx, client, nil, w, manager)
	}
	w = w.DeepCopy()
	w.SetUID(have.GetUID())
	_, err := client.Apply(ctx, w.GetName(), w, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// drifted reports whether have differs from w in a field or label of w, or is being deleted.
func drifted(have, w *unstructured.Unstructured) bool {
	for field, value := range w.Object {
		if field != "metadata" && !equality.Semantic.DeepEqual(have.Object[field], value) {
			return true
		}
	}
	for key, value := range w.GetLabels() {
		if have.GetLabels()[key] != value {
			return true
		}
	}
	return have.GetDeletionTimestamp() != nil
}

// discard deletes obj only if the peer's object still has the UID of obj. An object that has
// replaced it stays. A missing object is no error.
func discard(ctx context.Context, client dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	err := client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(obj.GetUID())}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or replaced
		return nil
	}
	return err
}

// withdraw deletes the Roles and RoleBindings that were made for an account.
func withdraw(ctx context.Context, c *region.Conn, account string) error {
	for _, resource := range []schema.GroupVersionResource{bindingsResource, rolesResource} {
		client := c.Dynamic().Resource(resource).Namespace(account)
		found, err := client.List(ctx, metav1.ListOptions{LabelSelector: Label + "=" + account})
		for i := range itemsOf(found) {
			if err == nil && isGrant(&found.Items[i]) {
				err = discard(ctx, client, &found.Items[i])
			}
		}
		if err != nil {
			return failed(c, "delete "+resource.Resource+" of account "+account, err)
		}
	}
	return nil
}

func itemsOf(l *unstructured.UnstructuredList) []unstructured.Unstructured {
	if l == nil {
		return nil
	}
	return l.Items
}

// err returns why the Account's subjects lack some of their rights: other clients' objects have the
// names of the Account's objects, or the peer rejected a request. Otherwise it returns nil, also
// while the namespace is being deleted: namespace.err reports that.
func (a access) err(c *region.Conn) error {
	switch {
	case len(a.foreign) > 0:
		return failed(c, "activate Account", fmt.Errorf("%s: %w", strings.Join(a.foreign, ", "), errForeign))
	case a.refused != nil:
		return failed(c, "activate Account", a.refused)
	default:
		return nil
	}
}
