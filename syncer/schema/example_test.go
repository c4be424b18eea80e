// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/atoll-dev/atoll/syncer/schema"
)

func size(maximum float64) *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"size": {Type: "integer", Maximum: &maximum},
		}},
	}}
}

func ExampleNegotiate() {
	n, err := schema.Negotiate(
		schema.Side{Name: "upstream", Schema: size(10)},
		schema.Side{Name: "cluster-1", Schema: size(3)},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*n.Schema.Properties["spec"].Properties["size"].Maximum)
	for _, d := range n.Differences {
		fmt.Println(d)
	}
	// Output:
	// 3
	// spec.size: maximum: narrows: upstream {"value":10}, cluster-1 {"value":3}
}

func ExampleAccepts() {
	ok, why, err := schema.Accepts(size(3), size(10))
	fmt.Println(ok, why, err)
	// Output:
	// false [spec.size: maximum: narrows: inner {"value":10}, outer {"value":3}] <nil>
}

func ExampleReadDocument() {
	document, err := schema.ReadDocument([]byte(`{"components": {"schemas": {"thing": {
		"type": "object",
		"properties": {"spec": {"type": "object"}},
		"x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}]
	}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	crd, err := document.CustomResourceDefinition(schema.Resource{Group: "example.com", Version: "v1", Plural: "things", Kind: "Thing", Status: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(document.Kinds(), crd.Name)
	// Output:
	// [example.com/v1, Kind=Thing] things.example.com
}
