// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource describes a type as discovery does.
type Resource struct {
	// Group and Version are the group and version of the resource. The core group is "".
	Group, Version string
	// Plural is the name in paths, such as "deployments".
	Plural     string
	Kind       string
	Singular   string
	ShortNames []string
	Categories []string
	Namespaced bool
	// Status and Scale report whether the type has these subresources.
	Status, Scale bool
}

// ResourceOf returns the resource named plural in a discovery list. It returns an error if the list has no such
// resource.
func ResourceOf(list *metav1.APIResourceList, plural string) (Resource, error) {
	gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return Resource{}, fmt.Errorf("discovery: %w", err)
	}
	out := Resource{Group: gv.Group, Version: gv.Version, Plural: plural}
	found := false
	for _, r := range list.APIResources {
		switch r.Name {
		case plural:
			found = true
			out.Kind, out.Singular, out.Namespaced = r.Kind, cmp.Or(r.SingularName, strings.ToLower(r.Kind)), r.Namespaced
			out.ShortNames, out.Categories = slices.Clone(r.ShortNames), slices.Clone(r.Categories)
		case plural + "/status":
			out.Status = true
		case plural + "/scale":
			out.Scale = true
		}
	}
	if !found {
		return Resource{}, fmt.Errorf("discovery: %s has no resource %s", list.GroupVersion, plural)
	}
	return out, nil
}

// GroupVersionKind returns the group, version and kind.
func (r Resource) GroupVersionKind() runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// CustomResourceDefinition returns a CRD that defines the type on another API server, with its status subresource, and
// with its scale subresource if spec.replicas and status.replicas are integers, as in built-in types. The scale of a
// CRD has a selector only if the status holds the selector as a string. Built-in types have no such field, so an
// autoscaler has to run where the pods are.
//
// kube-apiserver rejects CRDs in groups without a dot ("apps", "batch"), whatever their annotations: only a control
// plane without this check can define them. For the core group CustomResourceDefinition returns an error. For groups
// of the Kubernetes community (*.k8s.io, *.kubernetes.io) kube-apiserver requires an annotation, which the CRD has.
func (d *Document) CustomResourceDefinition(r Resource) (*apiextensionsv1.CustomResourceDefinition, error) {
	if r.Group == "" {
		return nil, fmt.Errorf("CRD of %s: a CRD cannot be in the core group", r.Plural)
	}
	s, err := d.Schema(r.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("CRD of %s.%s: %w", r.Plural, r.Group, err)
	}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: r.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: s},
	}
	if r.Status || r.Scale {
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{}
	}
	if r.Status {
		version.Subresources.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
	}
	if r.Scale && integer(s, "spec", "replicas") && integer(s, "status", "replicas") {
		version.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}
		version.AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Desired", Type: "integer", JSONPath: ".spec.replicas"},
			{Name: "Current", Type: "integer", JSONPath: ".status.replicas"},
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		}
		if integer(s, "status", "readyReplicas") {
			ready := apiextensionsv1.CustomResourceColumnDefinition{Name: "Ready", Type: "integer", JSONPath: ".status.readyReplicas"}
			version.AdditionalPrinterColumns = slices.Insert(version.AdditionalPrinterColumns, 2, ready)
		}
	}
	scope := apiextensionsv1.ClusterScoped
	if r.Namespaced {
		scope = apiextensionsv1.NamespaceScoped
	}
	out := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: r.Plural + "." + r.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: r.Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: r.Plural, Singular: r.Singular, Kind: r.Kind, ListKind: r.Kind + "List",
				ShortNames: slices.Clone(r.ShortNames), Categories: slices.Clone(r.Categories),
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
		},
	}
	if protected(r.Group) {
		out.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, learnt from an API server that serves the type"}
	}
	return out, nil
}

// protected reports whether a group belongs to the Kubernetes community.
func protected(group string) bool {
	return group == "k8s.io" || group == "kubernetes.io" || strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".kubernetes.io")
}

// integer reports whether the field at path is an integer.
func integer(s *apiextensionsv1.JSONSchemaProps, path ...string) bool {
	for _, name := range path {
		property, ok := s.Properties[name]
		if !ok {
			return false
		}
		s = &property
	}
	return s.Type == "integer"
}
