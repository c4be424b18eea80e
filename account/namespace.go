// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// Label is the label of each namespace, Role and RoleBinding that was made for an Account; its
// value is the Account's name. Atoll never deletes a namespace without this label.
const Label = "kubecarrier.io/account"

// namespace is the state of an Account's namespace in one peer.
type namespace struct {
	name        string
	uid         types.UID
	ours        bool // it has the label with the Account's name
	made        bool // by this call of ensureNamespace
	terminating bool
}

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func namespaces(c *region.Conn) dynamic.ResourceInterface {
	return c.Dynamic().Resource(namespacesResource)
}

// ensureNamespace reads a namespace, and creates it if it does not exist.
func ensureNamespace(ctx context.Context, c *region.Conn, name string) (namespace, error) {
	obj, err := namespaces(c).Get(ctx, name, metav1.GetOptions{})
	made := false
	if apierrors.IsNotFound(err) {
		obj, err = namespaces(c).Create(ctx, manifest(name), metav1.CreateOptions{FieldManager: FieldManager})
		made = err == nil
		if apierrors.IsAlreadyExists(err) { // another client was faster
			obj, err = namespaces(c).Get(ctx, name, metav1.GetOptions{})
		}
	}
	if err != nil {
		return namespace{}, failed(c, "make namespace "+name, err)
	}
	return namespace{
		name:        name,
		uid:         obj.GetUID(),
		ours:        ours(obj),
		made:        made,
		terminating: obj.GetDeletionTimestamp() != nil,
	}, nil
}

func manifest(account string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("v1")
	obj.SetKind("Namespace")
	obj.SetName(account)
	obj.SetLabels(map[string]string{Label: account})
	return obj
}

func ours(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()[Label] == obj.GetName()
}

// err returns why the namespace cannot be used.
func (n namespace) err(c *region.Conn) error {
	if !n.terminating {
		return nil
	}
	return failed(c, "activate Account", fmt.Errorf("namespace %s is being deleted and counts as held until it is gone", n.name))
}

// undo deletes the namespace if this activation has created it and the Account is gone. It keeps
// the namespace if a new Account of this name is Active, because that Account uses it.
func (n namespace) undo(ctx context.Context, c *region.Conn) error {
	if !n.made {
		return nil
	}
	next, err := current(ctx, c, manifest(n.name))
	if err != nil || next != nil && stageOf(next) == fanoutv1alpha1.StageActive {
		return err
	}
	return remove(ctx, c, n.name, n.uid)
}

// release deletes the namespace of the Account obj in c's peer, if the namespace was made for the
// Account. Otherwise it deletes only the Account's Roles and RoleBindings. It deletes nothing if
// another operation has added a new Account of this name.
func release(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured) error {
	name := obj.GetName()
	ns, err := namespaces(c).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return failed(c, "read namespace "+name, err)
	case ns.GetDeletionTimestamp() != nil:
		return nil
	}
	// Read the Account after the namespace: a late release may find the namespace of the next
	// Account of the name, and then that Account exists too.
	if replaced, err := replaced(ctx, c, obj); replaced || err != nil {
		return err
	}
	if !ours(ns) {
		return withdraw(ctx, c, name)
	}
	return remove(ctx, c, name, ns.GetUID())
}

func remove(ctx context.Context, c *region.Conn, name string, uid types.UID) error {
	err := namespaces(c).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return failed(c, "delete namespace "+name, err)
	}
	return nil
}

func failed(c *region.Conn, op string, err error) error {
	return &region.Error{Peer: c.Peer(), Op: op, Err: err}
}
