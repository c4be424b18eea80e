// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

// Mode says what the other peers hold once an object is committed.
type Mode int

const (
	// Once: one peer has the object, the others hold a guard of its name that
	// carries no payload.
	Once Mode = iota
	// Everywhere: each peer has the object, with the same content.
	Everywhere
)

// String returns "Once" or "Everywhere".
func (m Mode) String() string {
	if m == Everywhere {
		return "Everywhere"
	}
	return "Once"
}

// Kind describes a resource that can be fanned out. It is a value: there is no
// registration, and the protocol reads claims, never payloads, so third parties
// describe their own types with it and pass them in Options.Kinds.
type Kind struct {
	// Resource is the resource as the peers serve it.
	Resource schema.GroupVersionResource

	// Kind is the object's kind, such as "ServiceCluster".
	Kind string

	// Namespaced says that the resource lives in namespaces.
	Namespaced bool

	// Mode says what the other peers hold.
	Mode Mode

	// Claim says where the protocol keeps its state in the object. The zero
	// value is InSpec("fanout"). InAnnotation is for kinds whose schema one
	// cannot change.
	Claim Carrier

	// Payload returns the fields on which two requests must agree to be the
	// same request. Nil means all but status, claim and metadata other than
	// labels and annotations. It must be pure, and for a kind that exists
	// Everywhere give the same for an object as requested and as a peer keeps
	// it, in every coordinator: a home whose digest is not that of its revision
	// was edited by hand, which makes a sweep commit the next revision. A kind
	// whose fields a server fills in by itself leaves them out here.
	Payload func(*unstructured.Unstructured) (map[string]any, error)

	// Inert makes of a copy of the object a reservation without effect on
	// programs that know nothing of claims, such as a Secret without data. Nil
	// keeps the payload, for kinds whose controllers leave Reserved objects
	// alone. It is called for the peers that the payload goes to: each for a kind
	// that exists Everywhere, the target alone for one that exists Once. It must
	// be pure.
	Inert func(obj *unstructured.Unstructured) error

	// Guard, for a kind that exists Once, fills in what the other peers require
	// of an object of the kind: fields that its CRD requires, labels that a
	// policy demands. It gets an object with apiVersion, kind, namespace and name
	// and nothing else, so that a guard carries no payload; of what it changes,
	// metadata other than labels and annotations, status and claim are left out.
	// It must be pure, and the same in every coordinator: a sweep rewrites a guard
	// that was made by another one. Nil leaves guards with their claim alone. If a
	// peer refuses a guard, Add and Adopt fail with a *GuardError before their
	// first write.
	Guard func(guard *unstructured.Unstructured) error

	// AdoptApplied makes Start adopt objects that were applied without a claim,
	// as Adopt does. Until then such an object holds its name in its peer and is
	// not in force.
	AdoptApplied bool

	// Within, for a namespaced kind, is a cluster-scoped kind that exists
	// everywhere: an object of it that is named like the namespace must be
	// Active in the target, or the object is not added.
	Within schema.GroupVersionResource

	// Holds, for a kind that other kinds are Within, are those kinds'
	// resources: while one of their objects lives in the namespace of that
	// name, in any peer, the object is not removed.
	Holds []schema.GroupVersionResource

	// Activated is called in each peer after the object became Configured or
	// Active there: at least once, and again after changes and crashes, so it
	// must be idempotent. An error is tried again and reported; it never undoes
	// the commit. May be nil.
	Activated func(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured) error

	// Ready says of an object that is in force, as a peer lists it, whether what
	// Activated makes of it is there, such as by a condition in its status. A
	// sweep calls Activated again where it is not. It must be pure. Nil means
	// that no sweep looks.
	Ready func(obj *unstructured.Unstructured) bool

	// Released is called in each peer, with the object as it was, when a
	// committed removal has taken away all that the object Holds and before
	// the object itself is gone: at least once, so it must be idempotent. It may
	// come so late that somebody else finished the removal and the name was
	// added again: it must leave alone what was made for an object with another
	// claim. An error is tried again and holds the removal up. May be nil.
	Released func(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured) error
}

// GroupKind returns the kind's group and kind.
func (k Kind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.Resource.Group, Kind: k.Kind}
}

// ServiceClusters returns the kind kubecarrier.io/v1alpha1 ServiceCluster: one
// peer has it, the others guard its name, and its namespace is an Account's.
func ServiceClusters() Kind {
	return Kind{
		Resource:   schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"},
		Kind:       "ServiceCluster",
		Namespaced: true,
		Mode:       Once,
		Within:     schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"},
	}
}
