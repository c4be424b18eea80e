// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"reflect"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/config"
)

// typeState is the state of one CRD.
type typeState int

const (
	typeMissing typeState = iota
	typeForeign
	typeNewer
	typeDeleting
	typeRejected
	typeDiffers // an older schema, or one of another build with the same version
	typeSame
)

// stateOfType compares a CRD, which may be nil, with that of this release.
func stateOfType(present, ours *unstructured.Unstructured) typeState {
	if present == nil {
		return typeMissing
	}
	version, err := strconv.Atoi(present.GetLabels()[config.SchemaVersionLabel])
	own, _ := strconv.Atoi(config.SchemaVersion)
	switch {
	case present.GetDeletionTimestamp() != nil:
		return typeDeleting
	case err != nil:
		return typeForeign
	case version > own:
		return typeNewer
	case !established(present):
		return typeRejected
	case version < own || !reflect.DeepEqual(defaultedSpec(present), defaultedSpec(ours)):
		return typeDiffers
	}
	return typeSame
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == string(apiextensionsv1.Established) && condition["status"] == string(apiextensionsv1.ConditionTrue)
	})
}

// defaultedSpec returns the spec of a CRD with an API server's defaults, so that they are no difference.
func defaultedSpec(crd *unstructured.Unstructured) any {
	typed := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, typed); err != nil {
		return crd.Object["spec"]
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(typed)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&typed.Spec)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed.Spec)
	if err != nil {
		return crd.Object["spec"]
	}
	return spec
}
