// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// typeConverter returns a converter with which a server-side apply merges by the type's own schema:
// the items of lists by key, sets, and atomic fields as a whole.
func (t *custom) typeConverter(r *resource) (managedfields.TypeConverter, error) {
	return managedfields.NewTypeConverter(map[string]*spec.Schema{r.kind: t.openAPI(r)}, t.preserve)
}

// openAPI returns the schema of the type, with apiVersion, kind and metadata added.
func (t *custom) openAPI(r *resource) *spec.Schema {
	s := t.structural.ToKubeOpenAPI()
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	s.Properties["apiVersion"] = *spec.StringProperty()
	s.Properties["kind"] = *spec.StringProperty()
	s.Properties["metadata"] = objectMetaSchema()
	s.VendorExtensible.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": r.group, "version": r.version, "kind": r.kind},
	})
	return s
}

// objectMetaSchema returns the part of ObjectMeta's schema that determines how metadata is merged.
func objectMetaSchema() spec.Schema {
	text, number, flag := *spec.StringProperty(), *spec.Int64Property(), *spec.BoolProperty()
	owner := mapOf(map[string]spec.Schema{
		"apiVersion": text, "kind": text, "name": text, "uid": text, "controller": flag, "blockOwnerDeletion": flag,
	})
	owner.VendorExtensible.AddExtension("x-kubernetes-map-type", "atomic")
	owners := *spec.ArrayProperty(&owner)
	owners.VendorExtensible.AddExtension("x-kubernetes-list-type", "map")
	owners.VendorExtensible.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	finalizers := *spec.ArrayProperty(&text)
	finalizers.VendorExtensible.AddExtension("x-kubernetes-list-type", "set")
	fields := mapOf(nil)
	fields.VendorExtensible.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	entry := mapOf(map[string]spec.Schema{
		"manager": text, "operation": text, "apiVersion": text, "time": text, "fieldsType": text, "fieldsV1": fields, "subresource": text,
	})
	managed := *spec.ArrayProperty(&entry)
	managed.VendorExtensible.AddExtension("x-kubernetes-list-type", "atomic")
	return mapOf(map[string]spec.Schema{
		"name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
		"generation": number, "creationTimestamp": text, "deletionTimestamp": text, "deletionGracePeriodSeconds": number,
		"labels": *spec.MapProperty(&text), "annotations": *spec.MapProperty(&text),
		"ownerReferences": owners, "finalizers": finalizers, "managedFields": managed,
	})
}

func mapOf(properties map[string]spec.Schema) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: properties}}
}
