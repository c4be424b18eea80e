// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaultCRD sets the defaults of a CRD.
func defaultCRD(o object) {
	spec := child(o, "spec")
	names := child(spec, "names")
	fill(names, "singular", strings.ToLower(text(names["kind"])))
	if kind := text(names["kind"]); kind != "" {
		fill(names, "listKind", kind+"List")
	}
	fill(child(spec, "conversion"), "strategy", "None")
}

// prepareCRD sets the initial status of a new CRD.
func prepareCRD(o object) {
	var stored []any
	versions, _ := child(o, "spec")["versions"].([]any)
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["storage"] == true {
			stored = append(stored, version["name"])
		}
	}
	o["status"] = map[string]any{
		"conditions": nil, "storedVersions": stored,
		"acceptedNames": map[string]any{"plural": "", "kind": ""},
	}
}

// validateCRD rejects CRDs that cannot be served.
func validateCRD(o, old object) field.ErrorList {
	crd, err := decodeCRD(o)
	path := field.NewPath("spec")
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	var errs field.ErrorList
	names := crd.Spec.Names
	if want := names.Plural + "." + crd.Spec.Group; crd.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), crd.Name, `must be spec.names.plural+"."+spec.group`))
	}
	for _, msg := range validation.IsDNS1123Subdomain(crd.Spec.Group) {
		errs = append(errs, field.Invalid(path.Child("group"), crd.Spec.Group, msg))
	}
	if !strings.Contains(crd.Spec.Group, ".") {
		errs = append(errs, field.Invalid(path.Child("group"), crd.Spec.Group, "should be a domain with at least one dot"))
	}
	errs = append(errs, validateApproval(crd)...)
	if names.Kind == "" {
		errs = append(errs, field.Required(path.Child("names", "kind"), ""))
	}
	for _, msg := range validation.IsDNS1035Label(names.Plural) {
		errs = append(errs, field.Invalid(path.Child("names", "plural"), names.Plural, msg))
	}
	if s := crd.Spec.Scope; s != apiextensionsv1.ClusterScoped && s != apiextensionsv1.NamespaceScoped {
		errs = append(errs, field.NotSupported(path.Child("scope"), s, []string{"Cluster", "Namespaced"}))
	}
	errs = append(errs, validateVersions(crd, path.Child("versions"))...)
	if old != nil {
		errs = append(errs, validateCRDUpdate(crd, old, path)...)
	}
	return errs
}

// validateApproval requires the annotation api-approved.kubernetes.io for groups of the Kubernetes
// community.
func validateApproval(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	group := crd.Spec.Group
	protected := group == "k8s.io" || strings.HasSuffix(group, ".k8s.io") || group == "kubernetes.io" || strings.HasSuffix(group, ".kubernetes.io")
	if !protected || crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation] != "" {
		return nil
	}
	return field.ErrorList{field.Required(field.NewPath("metadata", "annotations").Key(apiextensionsv1.KubeAPIApprovedAnnotation), "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111")}
}

func validateVersions(crd *apiextensionsv1.CustomResourceDefinition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	storage := 0
	seen := map[string]bool{}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if seen[v.Name] {
			errs = append(errs, field.Invalid(path, v.Name, "must contain unique version names"))
		}
		seen[v.Name] = true
		for _, msg := range validation.IsDNS1035Label(v.Name) {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), v.Name, msg))
		}
		if v.Storage {
			storage++
		}
		if _, err := newCustom(crd, v); err != nil {
			errs = append(errs, field.Invalid(path.Index(i).Child("schema", "openAPIV3Schema"), "", err.Error()))
			continue
		}
		errs = append(errs, validateRules(v, path.Index(i).Child("schema", "openAPIV3Schema"))...)
		if _, err := customColumns(v.AdditionalPrinterColumns); err != nil {
			errs = append(errs, field.Invalid(path.Index(i).Child("additionalPrinterColumns"), "", err.Error()))
		}
	}
	if storage != 1 {
		errs = append(errs, field.Invalid(path, "", "must have exactly one version marked as storage version"))
	}
	return errs
}

func validateCRDUpdate(crd *apiextensionsv1.CustomResourceDefinition, old object, path *field.Path) field.ErrorList {
	before, err := decodeCRD(old)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	var errs field.ErrorList
	immutable := func(name string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			errs = append(errs, field.Invalid(path.Child(name), a, "field is immutable"))
		}
	}
	immutable("group", crd.Spec.Group, before.Spec.Group)
	immutable("scope", crd.Spec.Scope, before.Spec.Scope)
	immutable("names.plural", crd.Spec.Names.Plural, before.Spec.Names.Plural)
	immutable("names.kind", crd.Spec.Names.Kind, before.Spec.Names.Kind)
	for i, stored := range before.Status.StoredVersions {
		if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			errs = append(errs, field.Invalid(field.NewPath("status", "storedVersions").Index(i), stored, "missing from spec.versions; "+stored+" was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in "+stored+" and removes "+stored+" from status.storedVersions"))
		}
	}
	return errs
}
