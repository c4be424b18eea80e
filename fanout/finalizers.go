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

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// FinalizerError means that an object is being deleted in a peer, and that finalizers of other
// controllers still block the deletion. The Operation of a committed removal has a FinalizerError
// in Peers for each such peer; errors.As finds it. Repair the controller that set the finalizer, or
// wait for it; the removal then continues by itself.
type FinalizerError struct {
	Kind       schema.GroupKind
	Key        types.NamespacedName
	Finalizers []string  // sorted
	Since      time.Time // of the deletion
}

// Error names the object, the time of its deletion, its finalizers and the remedy.
func (e *FinalizerError) Error() string {
	return fmt.Sprintf("%s %s is being deleted since %s and waits for finalizer %s: the controller that set it must remove it",
		e.Kind.Kind, keyString(e.Key), e.Since.UTC().Format(time.RFC3339), strings.Join(e.Finalizers, ", "))
}

// waitsFor returns the finalizers of other controllers that block the deletion of obj. It returns
// nil if obj is not being deleted or has no such finalizer.
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
