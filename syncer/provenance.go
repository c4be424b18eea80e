// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// provenance is the evidence in one object of its origin: its marks, and its managedFields, which name the writers of
// the marks. If another client removes or changes a mark, our manager no longer owns it.
type provenance struct {
	origin types.NamespacedName
	uid    types.UID
	// lostOrigin: the origin annotation cannot be used, because it is missing or malformed. lostUID: the UID
	// annotation is missing. Either is also true if signed is true and another client has changed that annotation.
	lostOrigin, lostUID bool
	// signed: our manager applied our owner label. A client that copies an object copies the label, but not the
	// managedFields.
	signed bool
	// unlabelled: our manager applied the object, and it has no owner label.
	unlabelled bool
}

// provenanceOf returns the provenance of obj. obj must have the entries of manager in its managedFields.
func provenanceOf(obj metav1.Object, manager, owner string) provenance {
	annotations := obj.GetAnnotations()
	label, labelled := obj.GetLabels()[ownerLabel]
	p := provenance{
		origin: originOf(obj), uid: types.UID(annotations[uidAnnotation]),
		signed:     labelled && label == owner && loop.Applied(obj, manager, "metadata", "labels", ownerLabel),
		unlabelled: !labelled && loop.Applied(obj, manager),
	}
	changed := func(annotation string) bool {
		return p.signed && !loop.Wrote(obj, manager, "metadata", "annotations", annotation) // not Applied, since takeOver patches
	}
	p.lostOrigin, p.lostUID = p.origin.Name == "" || changed(originAnnotation), p.uid == "" || changed(uidAnnotation)
	return p
}

// evidence returns the UID under which syncedType.withdrawn records that obj may be deleted: the UID of the origin of
// obj, or the UID of obj itself if its origin's UID is lost.
func (p provenance) evidence(obj metav1.Object) types.UID {
	if p.lostUID {
		return obj.GetUID()
	}
	return p.uid
}

// relation is the relation of a downstream object to the upstream object that maps to its namespace and name.
type relation int

const (
	// foreign: this syncer did not make the downstream object.
	foreign relation = iota
	// copied: the downstream object belongs to this upstream object.
	copied
	// preceded: the downstream object belongs to a predecessor, which had the same name and was replaced.
	preceded
	// misplaced: this syncer made the downstream object for an object of another name or namespace.
	misplaced
	// unknown: this syncer made the downstream object, and the marks that are left do not name its origin.
	unknown
)

// relationTo returns the relation of the object with the provenance p to the upstream object with that key and UID.
// held is true if the upstream object has our finalizer, which is evidence that this syncer has made a downstream
// object for it.
func (p provenance) relationTo(key types.NamespacedName, uid types.UID, held bool) relation {
	sameOrigin, sameUID := p.origin == key, p.uid == uid
	switch {
	case !sameOrigin && !p.lostOrigin && p.signed:
		return misplaced
	case !sameOrigin && !p.lostOrigin:
		return foreign
	case sameUID:
		return copied
	case !p.lostUID && (sameOrigin || p.signed):
		return preceded
	case p.signed && held:
		return copied
	case p.signed, p.unlabelled, sameOrigin:
		return unknown
	}
	return foreign
}

// relation returns the relation of d to u. held reports whether u has our finalizer.
func (s *Syncer) relation(d, u metav1.Object, held bool) relation {
	return provenanceOf(d, manager, s.owner).relationTo(types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, u.GetUID(), held)
}

// howToMark returns the message about an object that has lost its marks, with the remedy.
func howToMark(place, key types.NamespacedName, uid types.UID, owner string) string {
	return fmt.Sprintf("%s downstream was written by a syncer and has lost the annotations of its origin: if it belongs to this object, set its label %s=%s and "+
		"its annotations %s=%s and %s=%s; otherwise delete it", loop.KeyText(place), ownerLabel, owner, originAnnotation, loop.KeyText(key), uidAnnotation, uid)
}

// notOurs returns the message about a downstream object on which another client wrote the label of this syncer.
func (s *Syncer) notOurs(place types.NamespacedName) string {
	return fmt.Sprintf("%s downstream has the label %s=%s, which another client wrote, and stays as it is: delete it, or remove the label",
		loop.KeyText(place), ownerLabel, s.owner)
}
