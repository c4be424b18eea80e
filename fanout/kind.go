// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

// Mode selects which objects the other peers hold for a committed primary: guards or replicas.
type Mode int

const (
	// Once: one peer has the object, and the others hold a guard of its name without payload.
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

// Kind describes a resource that can be fanned out. It is a value: there is no registration. The
// protocol decides by claims and by digests of payloads, so third parties describe their own types
// with a Kind and pass them in Options.Kinds.
type Kind struct {
	// Resource is the resource as the peers serve it.
	Resource schema.GroupVersionResource

	// Kind is the object's kind, such as "ServiceCluster".
	Kind string

	// Namespaced is set if the resource is namespaced. The namespace of an object must exist in every peer, or Add and
	// Adopt fail: Atoll creates only the namespaces of Accounts.
	Namespaced bool

	// Mode selects which objects the other peers hold for a committed primary: guards or replicas.
	Mode Mode

	// Claim selects where the protocol keeps its state in the object. The zero value is
	// InSpec("fanout"). InAnnotation is for kinds whose schema cannot be changed.
	Claim Carrier

	// Payload returns the fields in which two requests must agree to be the same request. Nil
	// means all fields except status, claim and metadata; labels and annotations are included. It
	// must be pure. For a kind that exists Everywhere, Payload must return the same fields for the
	// object in the request as for the object that a peer stores, in every coordinator. If they
	// differ, the home counts as edited by hand, and a sweep commits the next revision. So Payload
	// leaves out fields that a server fills in.
	Payload func(*unstructured.Unstructured) (map[string]any, error)

	// Inert turns a copy of the object into a reservation without effect on programs that do
	// not know claims, such as a Secret without data. Nil keeps the payload, for kinds whose
	// controllers ignore Reserved objects. Inert is called for the peers that get the payload:
	// for every peer if the kind exists Everywhere, for the target alone if the kind exists
	// Once. It must be pure.
	Inert func(obj *unstructured.Unstructured) error

	// Guard, for a kind that exists Once, fills in the fields that the other peers require of an
	// object of the kind, such as required fields of its CRD or labels that a policy demands. It gets
	// an object with apiVersion, kind, namespace and name only, so a guard carries no payload. Its
	// changes to status, claim and metadata are ignored, except changes to labels and annotations. It
	// must be pure and the same in every coordinator: otherwise the sweeps of one coordinator rewrite
	// the guards of another. If Guard is nil, a guard has only its claim. If a peer rejects a guard,
	// Add and Adopt fail with a *GuardError: before their first write if the dry run of the guard
	// shows the rejection.
	Guard func(guard *unstructured.Unstructured) error

	// AdoptApplied makes Start adopt objects that were applied without a claim, as Adopt does.
	// Before its adoption, such an object holds its name in its peer and is not in effect.
	AdoptApplied bool

	// Within, for a namespaced kind, is the resource of a cluster-scoped kind that exists everywhere.
	// An object is added only if an owner, an object of Within named like the namespace, is Active in
	// the target.
	Within schema.GroupVersionResource

	// Holds are the resources of the kinds that are Within this kind. An object owns the
	// namespace of its name, and is not removed while that namespace holds an object of these
	// resources in any peer.
	Holds []schema.GroupVersionResource

	// Activated is called for each peer after the object became Configured or Active in the
	// peer: at least once, and again after changes and crashes, so it must be idempotent. An
	// error is reported, and the call is retried; the object stays committed. May be nil.
	Activated func(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured) error

	// Ready reports whether an object in effect, as a peer lists it, has the result of
	// Activated, such as a condition in its status. If Ready returns false, a sweep calls
	// Activated again. Ready must be pure. If Ready is nil, sweeps do not check for the result.
	Ready func(obj *unstructured.Unstructured) bool

	// Released, for a kind that exists Everywhere, is called for each peer after a committed removal
	// has deleted the replicas, and before the removal deletes the primary. It gets the primary as the
	// coordinator last read it. It is called at least once, so it must be idempotent. It may be called
	// late, when another coordinator has finished the removal and the name was added again: it must
	// not touch results of an object with another claim. An error delays the removal, and the call is
	// retried. May be nil. For a kind that exists Once, set a finalizer of your own on the primary, and do this work
	// before you remove the finalizer: a removal waits for it.
	Released func(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured) error
}

// GroupKind returns the kind's group and kind.
func (k Kind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.Resource.Group, Kind: k.Kind}
}

// ServiceClusters returns the kind kubecarrier.io/v1alpha1 ServiceCluster: one peer has it, the
// others guard its name, and an Account owns its namespace.
func ServiceClusters() Kind {
	return Kind{
		Resource:   schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"},
		Kind:       "ServiceCluster",
		Namespaced: true,
		Mode:       Once,
		Within:     schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"},
	}
}

// Secrets returns the kind v1 Secret, for Secrets of type Opaque that are the same in every peer, such as a generated
// password: see Coordinator.Agree. The claim is in the annotation fanout.atoll.dev/claim, which the objects of
// AdmissionPolicy protect. A Secret has no data until it is committed.
func Secrets() Kind {
	return Kind{
		Resource:   schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		Kind:       "Secret",
		Namespaced: true,
		Mode:       Everywhere,
		Claim:      InAnnotation(ours + "claim"),
		Inert: func(secret *unstructured.Unstructured) error {
			delete(secret.Object, "data")
			delete(secret.Object, "stringData")
			return nil
		},
	}
}
