// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

// Fanout changes objects of registered kinds in all peers together, with rights of its own. A Handler calls it only
// after the regions have allowed the write to the caller. Package router/coordinated implements it with a
// fanout.Coordinator. Its methods block until the outcome is known or ctx ends. They are safe for concurrent use, and
// return a *FanoutError.
type Fanout interface {
	// Kind returns the registered kind of a resource. ok is false for all other resources, whose writes are sent to
	// their regions. It does no I/O.
	Kind(schema.GroupResource) (kind Kind, ok bool)
	// Find reads the object of a name in all peers. A peer that does not answer is in Found.Silent.
	Find(ctx context.Context, k Kind, key types.NamespacedName) (Found, error)
	// Add adds the object o. Its primary will be in the given peer.
	Add(ctx context.Context, k Kind, o *unstructured.Unstructured, at region.PeerName, manager string) error
	// Update replaces the content of an object that exists everywhere by the content of o, if the object still has the
	// UID and the revision of base, which any peer has returned.
	Update(ctx context.Context, k Kind, o, base *unstructured.Unstructured) error
	// Remove removes the object from all peers, if it still has the UID of base and, with exact, the revision or
	// resourceVersion of base. left is true if the removal is committed and waits, for example for a finalizer.
	Remove(ctx context.Context, k Kind, base *unstructured.Unstructured, exact bool) (left bool, err error)
}

// Kind is a registered kind.
type Kind struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Everywhere is set if each peer has the object with the same content. Otherwise one peer has the object, and the
	// others guard its name.
	Everywhere bool
	// Manager is the field manager of the Fanout's writes. An apply may take over the fields that it owns.
	Manager string
	// Claims returns the fields of an object that only the Fanout may write, by their paths, such as "spec.fanout". It
	// is pure.
	Claims func(*unstructured.Unstructured) map[string]any
	// Reclaim returns a copy of o with the claims of another object in place of its own. It is pure.
	Reclaim func(o, of *unstructured.Unstructured) *unstructured.Unstructured
	// Claimed reports whether an object belongs to the Fanout. A person may have applied it in its region instead. It
	// is pure.
	Claimed func(*unstructured.Unstructured) bool
	// Content returns the fields that the Fanout writes into all peers. It is pure.
	Content func(*unstructured.Unstructured) (map[string]any, error)
}

// Found is an object as the peers have it.
type Found struct {
	// Homes are the peers that have a committed primary, ordered by name. There is one, or none if no peer that
	// answered has one. There are several if a peer was restored from a backup and has a removed object again, or if
	// another write came between the reads of two peers.
	Homes []region.PeerName
	// Objects are the objects of the name, by peer: the primary and its replicas or guards.
	Objects map[region.PeerName]*unstructured.Unstructured
	// Silent are the peers that did not answer.
	Silent []region.PeerName
}

// home returns the peer of the primary; empty if there is not exactly one.
func (f Found) home() region.PeerName {
	if len(f.Homes) == 1 {
		return f.Homes[0]
	}
	return ""
}

// FanoutError is why an operation of a Fanout is not committed, or why that is not known. Return it from a Fanout:
// the server sends Code, Reason and Text to the caller. If Doubt is set, read the object before you repeat the
// write.
type FanoutError struct {
	Code   int32
	Reason metav1.StatusReason
	Doubt  bool // the outcome is not known
	// Text describes the error to the caller. name returns the text for a peer, which contains no peer's name.
	Text func(name func(region.PeerName) string) string
	Err  error // for operators: it may name peers
}

// Error returns the text for operators.
func (e *FanoutError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Text(func(p region.PeerName) string { return "peer " + string(p) })
}

// Unwrap returns Err.
func (e *FanoutError) Unwrap() error { return e.Err }
