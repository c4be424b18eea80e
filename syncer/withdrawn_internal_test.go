// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// If a watch reports the deletion of an origin after a reconcile has read the origin from the cache, the origin stays
// withdrawn.
func TestAnOriginThatGoesDuringAPass(t *testing.T) {
	var w withdrawals
	key := originRef(types.NamespacedName{Name: "a"})
	w.add("uid")
	at := w.now()
	w.drop("uid", at)
	require.False(t, w.has(key, "uid"), "the reconcile found it in the cache")
	w.add("uid")
	w.drop("uid", at)
	require.True(t, w.has(key, "uid"), "it was deleted after the reconcile had read the cache")
	w.add("uid")
	w.drop("uid", w.now()-1)
	require.True(t, w.has(key, "uid"), "it was deleted once more")
}

// A takeover patches the annotation with the UID of the origin as our manager, so this mark does not count as lost. If
// another client patches the annotation, the mark counts as lost.
func TestACopyThatWasTakenOverKeepsItsMarks(t *testing.T) {
	taken := func(by string) provenance {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetLabels(map[string]string{ownerLabel: "me"})
		obj.SetAnnotations(map[string]string{originAnnotation: "default/a", uidAnnotation: "second"})
		entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
			return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
		}
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{
			entry(manager, metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:labels":{"f:`+ownerLabel+`":{}},"f:annotations":{"f:`+originAnnotation+`":{}}}}`),
			entry(by, metav1.ManagedFieldsOperationUpdate, `{"f:metadata":{"f:annotations":{"f:`+uidAnnotation+`":{}}}}`),
		})
		return provenanceOf(obj, manager, "me")
	}
	key := types.NamespacedName{Namespace: "default", Name: "a"}
	require.Equal(t, preceded, taken(manager).relationTo(key, "third", false))
	require.Equal(t, unknown, taken("somebody").relationTo(key, "third", false))
}
