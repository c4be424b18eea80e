// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configmaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	leases      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	roles       = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	crds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name},
	}}
}

// widget returns an object of the case's own type.
func (e *env) widget(name string, spec map[string]any) *unstructured.Unstructured {
	o := object(e.Group+"/v1", "Widget", name)
	if spec != nil {
		o.Object["spec"] = spec
	}
	return o
}

func configMap(name string, data map[string]any) *unstructured.Unstructured {
	o := object("v1", "ConfigMap", name)
	if data != nil {
		o.Object["data"] = data
	}
	return o
}

// parse decodes YAML from this package.
func parse(text string) map[string]any {
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}

// widgetCRD returns a CRD that uses most features of schemas.
func widgetCRD(group string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: parse(widgetYAML)}
	o.SetName("widgets." + group)
	_ = unstructured.SetNestedField(o.Object, group, "spec", "group") // spec is a map
	return o
}

const widgetYAML = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [conformance]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Color, type: string, jsonPath: .spec.color, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    selectableFields:
    - jsonPath: .spec.color
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "!has(oldSelf.owner) || (has(self.owner) && self.owner == oldSelf.owner)", message: owner is immutable}
            - {rule: "!has(self.size) || self.size <= 100", message: size is at most 100}
            properties:
              size: {type: integer, minimum: 0}
              color: {type: string, enum: [red, green, blue]}
              owner: {type: string}
              mode: {type: string, default: auto}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    port: {type: integer}
                    protocol: {type: string, default: TCP}
              list: {type: array, items: {type: string}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              nullable: {type: string, nullable: true}
              amount: {x-kubernetes-int-or-string: true}
          status:
            type: object
            properties:
              ready: {type: boolean}
              count: {type: integer, minimum: 0}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [type, status]
                  properties:
                    type: {type: string}
                    status: {type: string}
`
