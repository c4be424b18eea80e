// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// FieldManager owns what this package writes in a peer: an Account's status and
// its namespace.
const FieldManager = "atoll-account"

var (
	resource       = schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
	claimsResource = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "regionclaims"}
)

// Kind returns Account, of catalog.kubecarrier.io/v1alpha1, as a fan-out kind:
// it exists everywhere, and it is not removed while a ServiceCluster or a
// RegionClaim lives in its namespace in any peer, whose types every peer must
// serve. Its Activated makes the Account's namespace in a peer,
// with the Roles and RoleBindings of its subjects by DefaultRights, and writes the
// Account's status there, where its Ready reads it; its Released takes them away.
// Both may be called any number of times. The Account's name must be a namespace
// name: ValidateName.
func Kind() fanout.Kind { return KindWith(DefaultRights()) }

// KindWith is Kind with other rights. All programs that work on the same peers
// must have the same ones, or they undo one another's Roles. rights must not be
// modified afterwards.
func KindWith(rights Rights) fanout.Kind {
	return fanout.Kind{
		Resource: resource,
		Kind:     "Account",
		Mode:     fanout.Everywhere,
		Holds:    []schema.GroupVersionResource{fanout.ServiceClusters().Resource, claimsResource},
		Activated: func(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured) error {
			return activate(ctx, c, obj, rights)
		},
		Ready:    ready,
		Released: release,
	}
}

// Kinds returns what this module fans out: ServiceClusters and Accounts, in that
// order, for fanout.Options.Kinds.
func Kinds() []fanout.Kind {
	return []fanout.Kind{fanout.ServiceClusters(), Kind()}
}

// ValidateName says why an Account cannot have that name. Its namespace is named
// like it, so it must be a DNS-1123 label: at most 63 lower-case letters, digits
// and hyphens. Namespaces that are Kubernetes' own, "default" and those whose
// names begin with "kube-", are no Account's.
func ValidateName(name string) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fmt.Errorf("account %q cannot have a namespace of its name: %s", name, msgs[0])
	}
	if name == "default" || strings.HasPrefix(name, "kube-") {
		return fmt.Errorf("account %q cannot have a namespace of its name: it is Kubernetes' own: choose another name", name)
	}
	return nil
}

// activate makes the namespace of the Account obj in c's peer, and in it the Roles
// and RoleBindings of its subjects, and reports that in the Account's status there.
func activate(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured, rights Rights) error {
	name := obj.GetName()
	if err := ValidateName(name); err != nil {
		return &region.Error{Peer: c.Peer(), Op: "activate Account", Err: err}
	}
	ns, err := ensureNamespace(ctx, c, name)
	if err != nil {
		return err
	}
	// Only now: if the Account is still there and not Removing, a removal has
	// yet to list and release what its namespace holds, and will find this one.
	account, err := current(ctx, c, obj)
	if err != nil {
		return err
	}
	if account == nil {
		return ns.undo(ctx, c)
	}
	granted := access{held: ns.terminating}
	if !granted.held {
		if granted, err = ensureAccess(ctx, c, account, rights, ns.made); err != nil {
			return err
		}
	}
	return errors.Join(report(ctx, c, account, ns, granted), ns.err(c), granted.err(c))
}
