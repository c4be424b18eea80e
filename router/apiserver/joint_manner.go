// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// object returns the object of an update as it is sent. If the caller read a replica, the result is the home with the
// caller's content, and an error means that the caller's object is not the replica's present version.
func (m manner) object(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o = o.DeepCopy()
	if m.version != "" {
		o.SetResourceVersion(m.version)
	}
	if m.replica == nil {
		return o, nil
	}
	current, err := m.current()
	switch {
	case err != nil:
		return nil, err
	case !current, o.GetUID() != "" && o.GetUID() != m.replica.GetUID(),
		o.GetResourceVersion() != "" && o.GetResourceVersion() != m.replica.GetResourceVersion():
		return nil, m.conflict()
	case !reflect.DeepEqual(m.kind.Claims(o), m.kind.Claims(m.replica)), !sameOwners(o, m.replica):
		return nil, bad("%s: %s differs from the object of this region in fields that the regions do not share: change those in a request of its own, and leave the fields of the gateway as they were read", m.kind.Kind, o.GetName())
	}
	return m.asHome(o), nil
}

// asHome returns the home with the content of o.
func (m manner) asHome(o *unstructured.Unstructured) *unstructured.Unstructured {
	sent := o.DeepCopy()
	sent.SetUID(m.home.GetUID())
	sent.SetResourceVersion(m.home.GetResourceVersion())
	sent.SetFinalizers(m.home.GetFinalizers())
	sent.SetOwnerReferences(m.home.GetOwnerReferences())
	sent.SetManagedFields(nil) // as the home has them
	return m.kind.Reclaim(sent, m.home)
}

// current reports whether the replica has the content of the home.
func (m manner) current() (bool, error) {
	one, err := m.kind.Content(m.replica)
	if err != nil {
		return false, err
	}
	other, err := m.kind.Content(m.home)
	return reflect.DeepEqual(one, other), err
}

func (m manner) conflict() error {
	return apierrors.NewConflict(m.kind.Resource.GroupResource(), m.home.GetName(), errors.New("the object has been modified; read it again"))
}

func sameOwners(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(a.GetFinalizers(), b.GetFinalizers()) && reflect.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}

// patch returns the patch as it is sent. A resourceVersion or UID of the replica becomes that of the home.
func (m manner) patch(kind types.PatchType, data []byte) ([]byte, error) {
	if m.version == "" && m.replica == nil {
		return data, nil
	}
	if kind == types.JSONPatchType {
		return m.operations(data)
	}
	var o map[string]any
	if err := yaml.Unmarshal(data, &o); err != nil { // JSON is YAML
		return nil, bad("patch: %v", err)
	}
	metadata, _ := o["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	if m.replica != nil {
		for field, is := range m.replaced() {
			if given, ok := metadata[field]; ok && given != is[0] {
				return nil, m.conflict()
			} else if ok {
				metadata[field] = is[1]
			}
		}
	}
	if m.version != "" {
		metadata["resourceVersion"] = m.version
	}
	o["metadata"] = metadata
	return json.Marshal(o)
}

// operations returns the operations of a JSON patch as they are sent.
func (m manner) operations(data []byte) ([]byte, error) {
	var operations []map[string]any
	if err := json.Unmarshal(data, &operations); err != nil {
		return nil, bad("patch: %v", err)
	}
	for _, op := range operations {
		if m.replica == nil {
			break
		}
		for field, is := range m.replaced() {
			if value, ok := op["value"]; ok && op["path"] == "/metadata/"+field {
				if value != is[0] {
					return nil, m.conflict()
				}
				op["value"] = is[1]
			}
		}
	}
	if m.version != "" {
		operations = append(operations, map[string]any{"op": "add", "path": "/metadata/resourceVersion", "value": m.version})
	}
	return json.Marshal(operations)
}

// replaced returns the metadata of the replica, and of the home in its place.
func (m manner) replaced() map[string][2]any {
	return map[string][2]any{
		"resourceVersion": {m.replica.GetResourceVersion(), m.home.GetResourceVersion()},
		"uid":             {string(m.replica.GetUID()), string(m.home.GetUID())},
	}
}
