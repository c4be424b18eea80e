// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

// RegionAnnotation is on every object in an answer and names the object's region. In a write it selects the region.
// It is never stored.
const RegionAnnotation = "router.atoll.dev/region"

// IncompleteAnnotation lists the regions that did not contribute, with the reasons. It is in the metadata of an
// incomplete list, or of the bookmark that ends incomplete initial events.
const IncompleteAnnotation = "router.atoll.dev/incomplete"

// nameSeparator separates name and region in a qualified name. No Kubernetes name contains it.
const nameSeparator = "@"

// splitName splits a qualified name into name and region. ok is false for a plain name, and if the part for the region
// is not valid.
func splitName(qualified string) (name string, k region.Key, ok bool) {
	name, text, ok := strings.Cut(qualified, nameSeparator)
	if !ok {
		return qualified, region.Key{}, false
	}
	k, err := region.ParseKey(text)
	if err != nil {
		return qualified, region.Key{}, false
	}
	return name, k, true
}

// RegionOf returns the region of an object from an answer. It returns false if the object has no valid
// RegionAnnotation.
func RegionOf(o *unstructured.Unstructured) (region.Key, bool) {
	k, err := region.ParseKey(o.GetAnnotations()[RegionAnnotation])
	return k, err == nil
}

// outward converts an object of s, in place, to an object of the common API. It leaves the resourceVersion
// unchanged.
func (a *API) outward(s *source, o *unstructured.Unstructured) {
	if s.common.GroupVersion() != s.regional.GroupVersion() {
		o.SetAPIVersion(s.common.GroupVersion().String())
	}
	metadata, ok := o.Object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		o.Object["metadata"] = metadata
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[RegionAnnotation] = s.region.String()
	if a.opts.Qualify {
		if name, ok := metadata["name"].(string); ok {
			metadata["name"] = name + nameSeparator + s.region.String()
		}
	}
}

// outwardWithVersion converts an object that a list, a get or a write of s returned. It calls outward, and sets the
// resourceVersion to one of the common API that names s.
func (a *API) outwardWithVersion(s *source, o *unstructured.Unstructured) error {
	if own := o.GetResourceVersion(); own != "" {
		rv, err := objectVersion(s.id, own).encode(a.opts.Keys)
		if err != nil {
			return err
		}
		o.SetResourceVersion(rv)
	}
	a.outward(s, o)
	return nil
}

// inward returns a copy of o, an object of the common API, converted to an object of s. The caller sets the
// resourceVersion.
func inward(s *source, o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	if gv, err := schema.ParseGroupVersion(o.GetAPIVersion()); err == nil && gv == s.common.GroupVersion() {
		o.SetAPIVersion(s.regional.GroupVersion().String())
	}
	if name, _, ok := splitName(o.GetName()); ok {
		o.SetName(name)
	}
	if annotations := o.GetAnnotations(); annotations != nil {
		delete(annotations, RegionAnnotation)
		if len(annotations) == 0 {
			annotations = nil
		}
		o.SetAnnotations(annotations)
	}
	return o
}
