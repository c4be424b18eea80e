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

// FinalizerError means that an object which is being deleted in a peer waits for finalizers of
// others. A committed removal has one in its Operation's Peers for each such peer; errors.As
// finds it.
type FinalizerError struct {
	Kind       schema.GroupKind
	Key        types.NamespacedName
	Finalizers []string  // sorted
	Since      time.Time // of the deletion
}

// Error names the object, since when it is being deleted, its finalizers and the remedy.
func (e *FinalizerError) Error() string {
	return fmt.Sprintf("%s %s is being deleted since %s and waits for finalizer %s: the controller that set it must remove it",
		e.Kind.Kind, keyString(e.Key), e.Since.UTC().Format(time.RFC3339), strings.Join(e.Finalizers, ", "))
}

// waitsFor returns the finalizers of others that hold obj, which is being deleted; nil if there
// are none.
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
