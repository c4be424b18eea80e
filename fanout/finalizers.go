// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// FinalizerError says that an object which is being deleted in a peer waits for
// finalizers that are not the protocol's. A removal that is committed has it in
// its Operation's Peers, one for each peer where that is so; errors.As finds it.
type FinalizerError struct {
	Kind       schema.GroupKind
	Key        types.NamespacedName
	Finalizers []string  // sorted
	Since      time.Time // of the deletion
}

// Error names the object, since when it is being deleted, its finalizers and
// what to do.
func (e *FinalizerError) Error() string {
	return fmt.Sprintf("%s %s is being deleted since %s and waits for finalizer %s: the controller that set it must remove it",
		e.Kind.Kind, keyString(e.Key), e.Since.UTC().Format(time.RFC3339), strings.Join(e.Finalizers, ", "))
}

// waitsFor says which finalizers of others hold obj, which is being deleted; nil if
// none do.
func waitsFor(gk schema.GroupKind, obj *unstructured.Unstructured) *FinalizerError {
	at := obj.GetDeletionTimestamp()
	if at == nil {
		return nil
	}
	foreign := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == v1alpha1.PrimaryFinalizer })
	if len(foreign) == 0 {
		return nil
	}
	slices.Sort(foreign)
	return &FinalizerError{Kind: gk, Key: objectKey(obj), Finalizers: foreign, Since: at.UTC()}
}

// observe keeps what finalizers hold the object in a peer, by what a command
// showed of it, and returns them.
func (r *runner) observe(peer region.PeerName, command protocol.Command, reply protocol.Reply) *FinalizerError {
	if command.Verb != protocol.Read && command.Verb != protocol.Put {
		return nil
	}
	obj, _, known := r.recall(reply.Object.UID, reply.Object.RV)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case reply.Code == protocol.OK && known:
		r.finalizers[peer] = waitsFor(r.kind.GroupKind(), obj)
	case reply.Code == protocol.NotFound:
		delete(r.finalizers, peer)
	}
	return r.finalizers[peer]
}

// finalizersAt is why the object in peer stays although it is being deleted; nil if
// it does not.
func (r *runner) finalizersAt(peer region.PeerName) *FinalizerError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finalizers[peer]
}
