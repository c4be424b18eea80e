// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi/openapitest"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/syncer/schema"
)

// documents returns the OpenAPI documents of kube-apiserver that client-go contains for tests.
func documents(t testing.TB) map[string]*schema.Document {
	t.Helper()
	paths, err := openapitest.NewEmbeddedFileClient().Paths()
	require.NoError(t, err)
	out := map[string]*schema.Document{}
	for name, gv := range paths {
		data, err := gv.Schema("application/json")
		require.NoError(t, err)
		out[name], err = schema.ReadDocument(data)
		require.NoError(t, err)
	}
	require.Contains(t, out, "apis/apps/v1")
	return out
}

// For each kind in the documents, kube-apiserver accepts the schema that Schema returns, and negotiating this schema
// with itself does not change it.
func TestEveryBuiltInKind(t *testing.T) {
	kinds := 0
	for name, d := range documents(t) {
		for _, gvk := range d.Kinds() {
			// Lists and the options of requests are not resources.
			if strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") || gvk.Kind == "WatchEvent" || gvk.Kind == "Status" {
				continue
			}
			kinds++
			s, err := d.Schema(gvk)
			require.NoError(t, err, name)
			require.NoError(t, installable(s), gvk.String())
			n, err := schema.Negotiate(schema.Side{Name: "a", Schema: s}, schema.Side{Name: "b", Schema: s.DeepCopy()})
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(s, n.Schema))
		}
	}
	require.Greater(t, kinds, 20)
}

// A server that has a converted schema stores every field of the manifests in testdata.
func TestManifestsKeepEveryField(t *testing.T) {
	all := documents(t)
	data, err := os.ReadFile("testdata/manifests.yaml")
	require.NoError(t, err)
	seen := 0
	for text := range strings.SplitSeq(string(data), "\n---\n") {
		var o map[string]any
		manifest, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		require.NoError(t, unmarshal(manifest, &o))
		gv, err := runtimeschema.ParseGroupVersion(o["apiVersion"].(string))
		require.NoError(t, err)
		name := "apis/" + gv.String()
		if gv.Group == "" {
			name = "api/" + gv.Version
		}
		s, err := all[name].Schema(gv.WithKind(o["kind"].(string)))
		require.NoError(t, err)
		j, err := newJudge(s)
		require.NoError(t, err)
		stored, unknown, err := j.admit(o)
		require.NoError(t, err, o["kind"])
		require.Empty(t, unknown, o["kind"])
		// The server fills in keys of lists only.
		require.Empty(t, cmp.Diff(o, stored, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == `["protocol"]` }, cmp.Ignore())))
		seen++
	}
	require.Equal(t, 4, seen)
}

func deployments(t testing.TB) schema.Resource {
	t.Helper()
	r, err := schema.ResourceOf(&metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
		{Name: "deployments", SingularName: "deployment", Kind: "Deployment", Namespaced: true, ShortNames: []string{"deploy"}, Categories: []string{"all"}},
		{Name: "deployments/status", Kind: "Deployment", Namespaced: true},
		{Name: "deployments/scale", Kind: "Scale", Namespaced: true},
	}}, "deployments")
	require.NoError(t, err)
	return r
}

func TestDeploymentAsCRD(t *testing.T) {
	crd, err := documents(t)["apis/apps/v1"].CustomResourceDefinition(deployments(t))
	require.NoError(t, err)
	require.Equal(t, "deployments.apps", crd.Name)
	v := crd.Spec.Versions[0]
	require.NotNil(t, v.Subresources.Status)
	require.Equal(t, ".spec.replicas", v.Subresources.Scale.SpecReplicasPath)
	require.Equal(t, ".status.replicas", v.Subresources.Scale.StatusReplicasPath)
	pod := v.Schema.OpenAPIV3Schema.Properties["spec"].Properties["template"].Properties["spec"]
	containers := pod.Properties["containers"]
	require.Equal(t, "map", *containers.XListType)
	require.Equal(t, []string{"name"}, containers.XListMapKeys)
	ports := containers.Items.Schema.Properties["ports"]
	require.Equal(t, []string{"containerPort", "protocol"}, ports.XListMapKeys)
	require.JSONEq(t, `"TCP"`, string(ports.Items.Schema.Properties["protocol"].Default.Raw))
	require.Nil(t, containers.Items.Schema.Properties["name"].Default, "the zero value of a Go type is no default")
	require.True(t, containers.Items.Schema.Properties["resources"].Properties["limits"].AdditionalProperties.Schema.XIntOrString)
	size, err := json.Marshal(crd)
	require.NoError(t, err)
	require.Less(t, len(size), 1<<20, "etcd takes about 1.5 MiB")
}

func TestCustomResourceDefinitionRefuses(t *testing.T) {
	d := documents(t)["apis/apps/v1"]
	r := deployments(t)
	r.Kind = "Nothing"
	_, err := d.CustomResourceDefinition(r)
	require.ErrorIs(t, err, schema.ErrNoSchema)
	r.Group = ""
	_, err = d.CustomResourceDefinition(r)
	require.EqualError(t, err, "CRD of deployments: a CRD cannot be in the core group")
	_, err = schema.ResourceOf(&metav1.APIResourceList{GroupVersion: "apps/v1"}, "deployments")
	require.EqualError(t, err, "discovery: apps/v1 has no resource deployments")
	_, err = schema.ReadDocument([]byte("{"))
	require.ErrorContains(t, err, "read OpenAPI document")
}

func document(t testing.TB, schemas string) *schema.Document {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte("components: {schemas: {" + schemas + "}}"))
	require.NoError(t, err)
	d, err := schema.ReadDocument(text)
	require.NoError(t, err)
	return d
}

var thing = runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}

const kind = `x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Thing}]`

func TestSchemaOfDocument(t *testing.T) {
	for _, test := range []struct{ name, schemas, want string }{
		{"recursion is cut", `t: {type: object, ` + kind + `, properties: {spec: {$ref: "#/components/schemas/node"}}}, node: {type: object, properties: {node: {$ref: "#/components/schemas/node"}}}`,
			`{type: object, properties: {node: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`},
		{"an object without fields is open", `t: {type: object, ` + kind + `, properties: {spec: {type: object}}}`, `{type: object, x-kubernetes-preserve-unknown-fields: true}`},
		{"no type is anything", `t: {type: object, ` + kind + `, properties: {spec: {description: any}}}`, `{description: any, x-kubernetes-preserve-unknown-fields: true}`},
		{"the description and default at the reference", `t: {type: object, ` + kind + `, properties: {spec: {description: mine, default: x, allOf: [{$ref: "#/components/schemas/node"}]}}}, node: {type: string, description: theirs}`,
			`{type: string, description: mine, default: x}`},
		{"merge keys become list keys", `t: {type: object, ` + kind + `, properties: {spec: {type: array, x-kubernetes-patch-strategy: "merge,retainKeys", x-kubernetes-patch-merge-key: name, items: {type: object, properties: {name: {type: string}}}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}}}}`},
		{"ports are told apart by protocol too", `t: {type: object, ` + kind + `, properties: {spec: {type: array, x-kubernetes-patch-strategy: merge, x-kubernetes-patch-merge-key: port, items: {type: object, required: [port], properties: {port: {type: integer}, protocol: {type: string, default: TCP}}}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port, protocol], items: {type: object, required: [port], properties: {port: {type: integer}, protocol: {type: string, default: TCP}}}}`},
		{"merged scalars are a set", `t: {type: object, ` + kind + `, properties: {spec: {type: array, x-kubernetes-patch-strategy: merge, items: {type: string}}}}`,
			`{type: array, x-kubernetes-list-type: set, items: {type: string}}`},
		{"keys that are not there are no keys", `t: {type: object, ` + kind + `, properties: {spec: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [x], items: {type: object, properties: {name: {type: string}}}}}}`,
			`{type: array, items: {type: object, properties: {name: {type: string}}}}`},
		{"items of a set are not null, and those of a list may be", `t: {type: object, ` + kind + `, properties: {spec: {type: object, properties: {set: {type: array, x-kubernetes-list-type: set, items: {type: string, nullable: true}}, list: {type: array, x-kubernetes-list-type: atomic, items: {type: string, nullable: true}}}}}}`,
			`{type: object, properties: {set: {type: array, x-kubernetes-list-type: set, items: {type: string}}, list: {type: array, x-kubernetes-list-type: atomic, items: {type: string, nullable: true}}}}`},
		{"defaults that are zero are left out", `t: {type: object, ` + kind + `, properties: {spec: {type: object, properties: {a: {type: integer, default: 0}, b: {type: integer, default: 1}, c: {type: string, default: ""}, d: {type: boolean, default: false}}}}}`,
			`{type: object, properties: {a: {type: integer}, b: {type: integer, default: 1}, c: {type: string}, d: {type: boolean}}}`},
		{"rules stay", `t: {type: object, ` + kind + `, properties: {spec: {type: string, x-kubernetes-validations: [{rule: "self != 'x'"}]}}}`,
			`{type: string, x-kubernetes-validations: [{rule: "self != 'x'"}]}`},
		{"an embedded resource, but not a map of them", `t: {type: object, ` + kind + `, properties: {spec: {type: object, properties: {one: {type: object, x-kubernetes-embedded-resource: true, properties: {a: {type: string}}}, map: {type: object, x-kubernetes-embedded-resource: true, additionalProperties: {type: string}}}}}}`,
			`{type: object, properties: {one: {type: object, x-kubernetes-embedded-resource: true, properties: {a: {type: string}}}, map: {type: object, additionalProperties: {type: string}}}}`},
		{"int-or-string", `t: {type: object, ` + kind + `, properties: {spec: {format: int-or-string, oneOf: [{type: integer}, {type: string}]}}}`,
			`{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := document(t, test.schemas).Schema(thing)
			require.NoError(t, err)
			require.Equal(t, show(schemaOf(t, test.want)), show(s.Properties["spec"]))
			require.NoError(t, installable(s))
		})
	}
}

func TestSchemaOfDocumentRefuses(t *testing.T) {
	wide := `t: {type: object, ` + kind + `, properties: {spec: {$ref: "#/components/schemas/n0"}}}`
	for i := range 12 {
		next := string(rune('0' + i + 1))
		if i >= 9 {
			next = "x" + string(rune('0'+i))
		}
		this := string(rune('0' + i))
		if i > 9 {
			this = "x" + string(rune('0'+i-1))
		}
		ref := `{$ref: "#/components/schemas/n` + next + `"}`
		wide += `, n` + this + `: {type: object, properties: {a: ` + ref + `, b: ` + ref + `, c: ` + ref + `, d: ` + ref + `}}`
	}
	for want, schemas := range map[string]string{
		"spec: $ref to node: the document does not have it": `t: {type: object, ` + kind + `, properties: {spec: {$ref: "#/components/schemas/node"}}}`,
		"want one that begins with":                         `t: {type: object, ` + kind + `, properties: {spec: {$ref: "other.json#/n"}}}`,
		"refers to both":                                    `t: {type: object, ` + kind + `, properties: {spec: {allOf: [{$ref: "#/components/schemas/node"}, {$ref: "#/components/schemas/m"}]}}}`,
		`type is "string": want object`:                     `t: {type: string, ` + kind + `}`,
		"more than 50000 parts":                             wide + `, nx8: {type: string}, nx9: {type: string}, nx:: {type: string}`,
	} {
		_, err := document(t, schemas).Schema(thing)
		require.ErrorContains(t, err, want)
	}
}

// For each kind that a document declares, Schema returns an error, or a schema that Negotiate accepts on both sides.
func FuzzReadDocument(f *testing.F) {
	f.Add([]byte(`{"components":{"schemas":{"t":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Thing"}],"properties":{"spec":{"$ref":"#/components/schemas/t"},"list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],"items":{"type":"object","properties":{"a":{"type":"string","default":"x"}}}}}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := schema.ReadDocument(data)
		if err != nil {
			return
		}
		for _, gvk := range d.Kinds() {
			s, err := d.Schema(gvk)
			if err != nil {
				continue
			}
			_, err = schema.Negotiate(schema.Side{Name: "a", Schema: s}, schema.Side{Name: "b", Schema: s})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
