// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/atoll-dev/atoll/config"
)

// validator validates objects against one CRD. It uses the packages of an API server, and checks
// unknown fields, sets defaults, and checks schema, lists and rules, in this order.
type validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// validatorFor returns the validator of an embedded CRD, after edit has changed
// its schema. edit may be nil.
func validatorFor(t *testing.T, name string, edit func(*apiextensions.JSONSchemaProps)) *validator {
	t.Helper()
	props := schemaOf(t, name)
	if edit != nil {
		edit(props)
	}
	return validatorOf(t, props)
}

// validatorOf returns the validator of a schema.
func validatorOf(t *testing.T, props *apiextensions.JSONSchemaProps) *validator {
	t.Helper()
	structural, err := structuralschema.NewStructural(props)
	require.NoError(t, err)
	schema, _, err := validation.NewSchemaValidator(props)
	require.NoError(t, err)
	return &validator{structural: structural, schema: schema, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// schemaOf returns the schema of the only version of an embedded CRD.
func schemaOf(t *testing.T, name string) *apiextensions.JSONSchemaProps {
	t.Helper()
	crd, err := config.CRD(name)
	require.NoError(t, err)
	require.Len(t, crd.Spec.Versions, 1)
	props := &apiextensions.JSONSchemaProps{}
	require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil))
	return props
}

// create returns the errors of obj as a new object. It sets defaults in obj.
func (v *validator) create(t *testing.T, obj map[string]any) field.ErrorList {
	t.Helper()
	errs := v.unknown(obj)
	defaulting.Default(obj, v.structural)
	errs = append(errs, validation.ValidateCustomResource(nil, obj, v.schema)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, obj)...)
	ruled, _ := v.rules.Validate(t.Context(), nil, v.structural, obj, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, ruled...)
}

// update returns the errors of an update from old to obj. It sets defaults in
// both.
func (v *validator) update(t *testing.T, obj, old map[string]any) field.ErrorList {
	t.Helper()
	errs := v.unknown(obj)
	defaulting.Default(obj, v.structural)
	defaulting.Default(old, v.structural)
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, obj, old, v.schema)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, obj)...)
	ruled, _ := v.rules.Validate(t.Context(), nil, v.structural, obj, old, celconfig.RuntimeCELCostBudget)
	return append(errs, ruled...)
}

// unknown returns errors for the fields of obj that the schema does not have.
func (v *validator) unknown(obj map[string]any) field.ErrorList {
	var errs field.ErrorList
	pruned := pruning.PruneWithOptions(runtime.DeepCopyJSON(obj), v.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range pruned {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	return errs
}
