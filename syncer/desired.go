// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

const (
	// ownerLabel is on each object downstream: which syncer made it.
	ownerLabel = "syncer.atoll.dev/owner"
	// These annotations are the ledger. originAnnotation and uidAnnotation say of which upstream object one is a copy,
	// appliedAnnotation is the hash of what was last written.
	originAnnotation  = "syncer.atoll.dev/origin"
	uidAnnotation     = "syncer.atoll.dev/uid"
	appliedAnnotation = "syncer.atoll.dev/applied"
)

// digest returns 26 characters that stand for data, fit for a label.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// originOf returns the origin that the annotation of d names, and nothing if no object can have that key: no API server could
// be asked for it.
func originOf(d metav1.Object) types.NamespacedName {
	origin := loop.ParseKey(d.GetAnnotations()[originAnnotation])
	valid := origin.Name != "" && (origin.Namespace == "") == (d.GetNamespace() == "") &&
		len(content.IsPathSegmentName(origin.Name)) == 0 && len(content.IsPathSegmentName(origin.Namespace)) == 0
	if !valid {
		return types.NamespacedName{}
	}
	return origin
}

// wanted is what is to be downstream for an object.
type wanted struct {
	*unstructured.Unstructured
	hash    string
	content []byte // all but the metadata, encoded
}

// body encodes w.
func (w *wanted) body() ([]byte, error) {
	meta, err := json.Marshal(w.Object["metadata"])
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return slices.Concat([]byte(`{"metadata":`), meta, []byte(","), w.content[1:]), nil // there is a kind at least
}

// desired returns what is to be downstream for u. d is what is there, nil if nothing. u's spec is taken over.
func (l *lane) desired(u, d *unstructured.Unstructured, place types.NamespacedName) (*wanted, error) {
	wish := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range u.Object {
		if field != "metadata" && field != "status" {
			wish.Object[field] = value
		}
	}
	wish.SetName(place.Name)
	wish.SetNamespace(place.Namespace)
	wish.SetLabels(synced(u.GetLabels(), l.syncer.opts.Label))
	wish.SetAnnotations(synced(u.GetAnnotations(), l.syncer.opts.Label))
	l.rules.apply(l.kind.GroupKind(), wish, func(path []string) bool {
		return d != nil && d.GetDeletionTimestamp() == nil && !loop.OwnsPath(d, manager, path...)
	})
	gvk := wish.GroupVersionKind()
	for _, transform := range l.syncer.opts.Transform {
		if err := transform(wish); err != nil {
			return nil, err
		}
	}
	if loop.KeyOf(wish) != place || wish.GroupVersionKind() != gvk {
		return nil, errors.New("a transformer changed the type, name or namespace, which it must not")
	}
	delete(wish.Object, "status")
	withoutNulls(wish.Object)
	labels := wish.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[ownerLabel] = l.syncer.owner
	wish.SetLabels(labels)
	annotations := wish.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[originAnnotation], annotations[uidAnnotation] = loop.KeyText(loop.KeyOf(u)), string(u.GetUID())
	wish.SetAnnotations(annotations)
	w := &wanted{Unstructured: wish}
	metadata := wish.Object["metadata"]
	delete(wish.Object, "metadata")
	var err error
	w.content, err = json.Marshal(wish.Object)
	wish.Object["metadata"] = metadata
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	data, err := w.body()
	if err != nil {
		return nil, err
	}
	w.hash = digest(data)
	annotations[appliedAnnotation] = w.hash
	wish.SetAnnotations(annotations)
	return w, nil
}

// withoutNulls removes fields that are null, such as the creationTimestamp of a template: they say nothing, and some
// servers take them for a change.
func withoutNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if inner == nil {
				delete(v, name)
				continue
			}
			withoutNulls(inner)
		}
	case []any:
		for _, inner := range v {
			withoutNulls(inner)
		}
	}
}
