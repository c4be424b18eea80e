// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// provenance is what one object says of where it comes from: by its marks, and by its managedFields, which say who wrote
// the marks. Another client can remove or change a mark; then our manager no longer owns it.
type provenance struct {
	origin types.NamespacedName
	uid    types.UID
	// lostOrigin and lostUID: the annotation is missing or malformed, or another client has changed it.
	lostOrigin, lostUID bool
	// signed: our manager applied our owner label. A client that copies an object copies the label, but not that.
	signed bool
	// unlabelled: our manager applied the object, and it has the owner label of no syncer.
	unlabelled bool
}

// provenanceOf reads obj, which holds the managedFields of manager.
func provenanceOf(obj metav1.Object, manager, owner string) provenance {
	annotations := obj.GetAnnotations()
	label, labelled := obj.GetLabels()[ownerLabel]
	p := provenance{
		origin: originOf(obj), uid: types.UID(annotations[uidAnnotation]),
		signed:     labelled && label == owner && loop.Applied(obj, manager, "metadata", "labels", ownerLabel),
		unlabelled: !labelled && loop.Applied(obj, manager),
	}
	changed := func(annotation string) bool {
		return p.signed && !loop.Wrote(obj, manager, "metadata", "annotations", annotation) // takeOver patches
	}
	p.lostOrigin, p.lostUID = p.origin.Name == "" || changed(originAnnotation), p.uid == "" || changed(uidAnnotation)
	return p
}

// evidence is the UID whose withdrawal lets obj go: that of its origin, or its own where the origin's is lost.
func (p provenance) evidence(obj metav1.Object) types.UID {
	if p.lostUID {
		return obj.GetUID()
	}
	return p.uid
}

// relation is what an object downstream is to one upstream that has its place.
type relation int

const (
	// foreign: this syncer did not make it.
	foreign relation = iota
	// copied: it is the downstream object of that one.
	copied
	// preceded: it is the downstream object of one of the same name that was replaced.
	preceded
	// misplaced: this syncer made it of an object of another name or namespace.
	misplaced
	// unknown: this syncer made it, and what is left of its marks does not say of which object.
	unknown
)

// to returns what the object is to the upstream object with that key and UID. held reports whether that one has our
// finalizer: then this syncer has made a downstream object of it.
func (p provenance) to(key types.NamespacedName, uid types.UID, held bool) relation {
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

// relation returns what d is to u. held reports whether u has our finalizer.
func (l *lane) relation(d, u metav1.Object, held bool) relation {
	return provenanceOf(d, manager, l.syncer.owner).to(types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, u.GetUID(), held)
}

// holds reports whether an object upstream has our finalizer.
func (l *lane) holds(u metav1.Object) bool {
	return slices.Contains(u.GetFinalizers(), l.syncer.finalizer)
}

// howToMark is the remedy for an object that has lost its marks.
func howToMark(place, key types.NamespacedName, uid types.UID, owner string) string {
	return fmt.Sprintf("%s downstream was written by a syncer and has lost the annotations of its origin: if it belongs to this object, set its label %s=%s and "+
		"its annotations %s=%s and %s=%s; otherwise delete it", loop.KeyText(place), ownerLabel, owner, originAnnotation, loop.KeyText(key), uidAnnotation, uid)
}

// notOurs is the report of an object downstream that has the label of this syncer from another client.
func (l *lane) notOurs(place types.NamespacedName) string {
	return fmt.Sprintf("%s downstream has the label %s=%s, which another client wrote, and stays as it is: delete it, or remove the label",
		loop.KeyText(place), ownerLabel, l.syncer.owner)
}
