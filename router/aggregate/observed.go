// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/router/aggregate/internal/splice"
)

// observed is an object of a region in a watch: decoded, or as JSON.
type observed struct {
	at     objectKey
	uid    types.UID
	rv     string
	print  uint64
	labels map[string]string

	decoded *unstructured.Unstructured // nil if the object is in json
	json    *splice.Object
	listed  string // the kind of the list that json is from, whose objects may have no type
}

// size returns the bytes of the object's JSON.
func (o *observed) size() int64 {
	if o == nil || o.json == nil {
		return 0
	}
	return int64(o.json.Size())
}

func observedDecoded(seed uint64, o *unstructured.Unstructured) *observed {
	return &observed{
		at: objectKey{o.GetNamespace(), o.GetName()}, uid: o.GetUID(), rv: o.GetResourceVersion(),
		print: splice.Fingerprint(seed, o.Object), labels: o.GetLabels(), decoded: o,
	}
}

func observedJSON(o *splice.Object) *observed {
	return &observed{
		at: objectKey{o.Namespace, o.Name}, uid: types.UID(o.UID), rv: o.ResourceVersion,
		print: o.Print, labels: o.Labels, json: o,
	}
}

// observed calls fn with the objects of p, until fn returns false. It returns whether fn always returned true.
func (p *page) observed(seed uint64, fn func(*observed) bool) bool {
	for i := range p.objects {
		if !fn(observedDecoded(seed, &p.objects[i])) {
			return false
		}
	}
	if p.json == nil {
		return true
	}
	for i := range p.json.Objects {
		o := observedJSON(&p.json.Objects[i])
		o.listed = p.kind
		if !fn(o) {
			return false
		}
	}
	return true
}
