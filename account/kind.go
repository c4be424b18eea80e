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

// FieldManager is the field manager of this package's writes in a peer: an Account's status, its
// namespace, Roles and RoleBindings.
const FieldManager = "atoll-account"

var (
	resource       = schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
	claimsResource = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "regionclaims"}
)

// Kind returns Account, of catalog.kubecarrier.io/v1alpha1, as a fan-out kind. It exists
// Everywhere. An Account is not removed while its namespace in any peer contains a ServiceCluster
// or a RegionClaim; every peer must serve these types. The function Activated creates the Account's
// namespace in a peer, with the Roles and RoleBindings of its subjects by DefaultRights, and writes
// the Account's status, which the function Ready reads. The function Released deletes the
// namespace, or only the Roles and RoleBindings if the namespace was not made for the Account.
// Activated and Released may be called any number of times. The Account's name must be a namespace
// name: ValidateName.
func Kind() fanout.Kind { return KindWith(DefaultRights()) }

// KindWith is Kind with rights instead of DefaultRights. All programs on the same peers must pass
// equal rights, or they revert one another's Roles. rights must not be modified afterwards.
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

// Kinds returns the kinds of this module, ServiceClusters and Accounts, in that order, for
// fanout.Options.Kinds.
func Kinds() []fanout.Kind {
	return []fanout.Kind{fanout.ServiceClusters(), Kind()}
}

// ValidateName returns why an Account cannot have this name; nil if it can. The Account's namespace
// has the same name, so the name must be a DNS-1123 label: at most 63 lower-case letters, digits
// and hyphens. It must not be a namespace of Kubernetes: "default", or a name that begins with
// "kube-".
func ValidateName(name string) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fmt.Errorf("account %q cannot have a namespace of its name: %s", name, msgs[0])
	}
	if name == "default" || strings.HasPrefix(name, "kube-") {
		return fmt.Errorf("account %q cannot have a namespace of its name: it is Kubernetes' own: choose another name", name)
	}
	return nil
}

// activate creates the namespace of the Account obj in c's peer, and in it the Roles and
// RoleBindings of its subjects, and reports this in the Account's status.
func activate(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured, rights Rights) error {
	name := obj.GetName()
	if err := ValidateName(name); err != nil {
		return &region.Error{Peer: c.Peer(), Op: "activate Account", Err: err}
	}
	ns, err := ensureNamespace(ctx, c, name)
	if err != nil {
		return err
	}
	// Read the Account after the namespace exists: if the Account is not Removing now, a later
	// removal finds the namespace and releases it.
	account, err := current(ctx, c, obj)
	if err != nil {
		return err
	}
	if account == nil {
		return ns.undo(ctx, c)
	}
	granted := access{noNamespace: ns.terminating}
	if !granted.noNamespace {
		if granted, err = ensureAccess(ctx, c, account, rights, ns.made); err != nil {
			return err
		}
	}
	return errors.Join(report(ctx, c, account, ns, granted), ns.err(c), granted.err(c))
}
