// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/atoll-dev/atoll/syncer/schema"
)

const (
	// ManagedLabel marks every definition that this package creates. Its value is "pulled" or "pushed".
	ManagedLabel = "types.atoll.dev/managed"
	// SourcesAnnotation names the sides from which a definition comes, for human readers.
	SourcesAnnotation = "types.atoll.dev/sources"

	pulled = "pulled"
	pushed = "pushed"
)

// source is one side's definition of a type.
type source struct {
	side string
	crd  *apiextensionsv1.CustomResourceDefinition
}

// portable returns a definition that another API server can have: without conversion webhook, UID and status, and with
// served versions only. If the definition has a conversion webhook, portable keeps only the storage version.
func portable(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: crd.Name},
		Spec:       *crd.Spec.DeepCopy(),
	}
	if approved, ok := crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; ok {
		out.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: approved}
	}
	webhook := crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	out.Spec.Conversion = nil
	out.Spec.Versions = slices.DeleteFunc(out.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !v.Served || webhook && !v.Storage || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil
	})
	elect(out)
	return out
}

// elect makes the version of highest priority the storage version, if none of the versions in crd is the storage
// version.
func elect(crd *apiextensionsv1.CustomResourceDefinition) {
	best := -1
	for i, v := range crd.Spec.Versions {
		if v.Storage {
			return
		}
		if best < 0 || version.CompareKubeAwareVersionStrings(v.Name, crd.Spec.Versions[best].Name) > 0 {
			best = i
		}
	}
	if best >= 0 {
		crd.Spec.Versions[best].Storage = true
	}
}

// errNoVersion is returned if the sides have no version in common.
var errNoVersion = errors.New("the sides have no version in common")

// agree returns a definition whose objects all sources accept, and the differences between the sources. The definition
// has the versions that all sources have in common.
func agree(sources []source) (*apiextensionsv1.CustomResourceDefinition, []schema.Difference, error) {
	out := portable(sources[0].crd)
	out.Annotations = portable(sources[0].crd).Annotations
	var differences []schema.Difference
	var versions []apiextensionsv1.CustomResourceDefinitionVersion
	for _, v := range out.Spec.Versions {
		var sides []schema.Side
		for _, s := range sources {
			other := find(s.crd, v.Name)
			if other == nil {
				break
			}
			sides = append(sides, schema.Side{Name: s.side, Schema: other.Schema.OpenAPIV3Schema})
			join(&v, other)
		}
		if len(sides) < len(sources) {
			continue
		}
		n, err := schema.Negotiate(sides...)
		if conflict, ok := errors.AsType[*schema.ConflictError](err); ok {
			return nil, conflict.Differences, fmt.Errorf("version %s: %w", v.Name, err)
		}
		if err != nil {
			return nil, differences, fmt.Errorf("version %s: %w", v.Name, err)
		}
		v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: n.Schema}
		v.Storage = false
		versions = append(versions, v)
		differences = append(differences, n.Differences...)
	}
	if len(versions) == 0 {
		return nil, nil, errNoVersion
	}
	for _, s := range sources[1:] {
		if s.crd.Spec.Scope != out.Spec.Scope || s.crd.Spec.Names.Kind != out.Spec.Names.Kind {
			return nil, nil, fmt.Errorf("%s has %s %s, %s has %s %s", sources[0].side, out.Spec.Scope, out.Spec.Names.Kind, s.side, s.crd.Spec.Scope, s.crd.Spec.Names.Kind)
		}
	}
	out.Spec.Versions = versions
	elect(out)
	return out, differences, nil
}

func find(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Name == name && v.Served && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			return v
		}
	}
	return nil
}

// join removes the parts of v that other lacks. v keeps the status subresource if other has it: a side without that
// subresource cannot keep the status apart from the spec. v keeps the scale subresource and the selectable fields
// only if those of other are equal.
func join(v, other *apiextensionsv1.CustomResourceDefinitionVersion) {
	a, b := v.Subresources, other.Subresources
	switch {
	case a == nil:
	case b == nil:
		v.Subresources = nil
	default:
		v.Subresources = a.DeepCopy()
		if b.Status == nil {
			v.Subresources.Status = nil
		}
		if !equality.Semantic.DeepEqual(a.Scale, b.Scale) {
			v.Subresources.Scale = nil
		}
	}
	if !equality.Semantic.DeepEqual(v.SelectableFields, other.SelectableFields) {
		v.SelectableFields = nil
	}
}

// mark sets the label and the annotation of a definition that this package creates.
func mark(crd *apiextensionsv1.CustomResourceDefinition, how string, from []string) {
	crd.Labels = map[string]string{ManagedLabel: how}
	if crd.Annotations == nil {
		crd.Annotations = map[string]string{}
	}
	crd.Annotations[SourcesAnnotation] = strings.Join(from, ",")
}

// same reports whether present has the annotations and the spec of wanted already, so that no write is needed.
func same(present, wanted *apiextensionsv1.CustomResourceDefinition) bool {
	for k, v := range wanted.Annotations {
		if present.Annotations[k] != v {
			return false
		}
	}
	return equality.Semantic.DeepEqual(complete(present).Spec, complete(wanted).Spec)
}

// complete returns a copy of crd with the defaults that an API server would set.
func complete(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	out := crd.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(out)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&out.Spec)
	return out
}

// narrows returns why wanted would reject objects that present accepts, with the differences. It returns "" if wanted
// accepts all of them.
func narrows(present, wanted *apiextensionsv1.CustomResourceDefinition) (string, []schema.Difference) {
	for _, v := range present.Spec.Versions {
		if !v.Served || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		next := find(wanted, v.Name)
		if next == nil {
			return "version " + v.Name + " would be gone", nil
		}
		ok, why, err := schema.Accepts(next.Schema.OpenAPIV3Schema, v.Schema.OpenAPIV3Schema)
		switch {
		case err != nil:
			return err.Error(), nil
		case !ok:
			return "version " + v.Name + " would accept less", why
		}
	}
	return "", nil
}
