// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

type gvr = schema.GroupVersionResource

// These paths in a JSON patch need conversion between the common API and a region.
const (
	pathVersion     = "/metadata/resourceVersion"
	pathAnnotations = "/metadata/annotations"
	pathRegion      = "/metadata/annotations/router.atoll.dev~1region"
	pathAPIVersion  = "/apiVersion"
)

// patch is a parsed patch: either the object of a merge or an apply, or the operations of a JSON patch.
type patch struct {
	object     *unstructured.Unstructured
	operations []map[string]any
}

func parsePatch(kind types.PatchType, data []byte) (*patch, error) {
	switch kind {
	case types.JSONPatchType:
		var p patch
		if err := json.Unmarshal(data, &p.operations); err != nil {
			return nil, err
		}
		return &p, nil
	case types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType:
		if kind == types.ApplyYAMLPatchType {
			var err error
			if data, err = yaml.YAMLToJSON(data); err != nil {
				return nil, err
			}
		}
		p := patch{object: &unstructured.Unstructured{}}
		if err := json.Unmarshal(data, &p.object.Object); err != nil {
			return nil, err
		}
		if p.object.Object == nil {
			return nil, errors.New("it is no object")
		}
		return &p, nil
	default:
		return nil, fmt.Errorf("type %q is not supported", kind)
	}
}

// version returns the resourceVersion in the operations of a JSON patch, or "".
func (p *patch) version() string {
	for _, op := range p.operations {
		if op["path"] == pathVersion {
			if rv, ok := op["value"].(string); ok {
				return rv
			}
		}
	}
	return ""
}

// inward converts the patch, in place, to a patch for s, and returns the JSON of the result. own is the object's
// version in the region of s.
func (p *patch) inward(s *source, own string) ([]byte, error) {
	if p.object != nil {
		inwardPatch(s, p.object.Object, own)
		return json.Marshal(p.object.Object)
	}
	kept := make([]map[string]any, 0, len(p.operations))
	for _, op := range p.operations {
		path, _ := op["path"].(string)
		value, valued := op["value"]
		switch path {
		case pathRegion:
			continue
		case pathVersion:
			if valued && own != "" {
				op["value"] = own
			}
		case pathAPIVersion:
			if value == s.common.GroupVersion().String() {
				op["value"] = s.regional.GroupVersion().String()
			}
		case pathAnnotations:
			if annotations, ok := value.(map[string]any); ok {
				delete(annotations, RegionAnnotation)
			}
		}
		kept = append(kept, op)
	}
	return json.Marshal(kept)
}

func inwardPatch(s *source, o map[string]any, own string) {
	if o["apiVersion"] == s.common.GroupVersion().String() {
		o["apiVersion"] = s.regional.GroupVersion().String()
	}
	metadata, ok := o["metadata"].(map[string]any)
	if !ok {
		return
	}
	if rv, ok := metadata["resourceVersion"].(string); ok && rv != "" {
		metadata["resourceVersion"] = own
	}
	if text, ok := metadata["name"].(string); ok {
		if name, _, qualified := splitName(text); qualified {
			metadata["name"] = name
		}
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		if _, had := annotations[RegionAnnotation]; had {
			if delete(annotations, RegionAnnotation); len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
	}
}
