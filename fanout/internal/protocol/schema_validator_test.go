// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	crds "github.com/atoll-dev/atoll/config"
)

// definition judges objects by an embedded CRD as an API server does.
type definition struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func definitionOf(t *testing.T, name string) *definition {
	t.Helper()
	crd, err := crds.CRD(name)
	require.NoError(t, err)
	props := &apiextensions.JSONSchemaProps{}
	require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil))
	structural, err := structuralschema.NewStructural(props)
	require.NoError(t, err)
	schema, _, err := validation.NewSchemaValidator(props)
	require.NoError(t, err)
	return &definition{structural: structural, schema: schema, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// refusal returns why an API server rejects spec as an update of old, or as a new object if old is
// nil. It returns "" if the API server accepts spec.
func (d *definition) refusal(t *testing.T, spec, old map[string]any) string {
	t.Helper()
	obj := map[string]any{"metadata": map[string]any{"name": "n"}, "spec": spec}
	var errs field.ErrorList
	if old == nil {
		errs = validation.ValidateCustomResource(nil, obj, d.schema)
		ruled, _ := d.rules.Validate(t.Context(), nil, d.structural, obj, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, ruled...)
	} else {
		was := map[string]any{"metadata": map[string]any{"name": "n"}, "spec": old}
		errs = validation.ValidateCustomResourceUpdate(nil, obj, was, d.schema)
		ruled, _ := d.rules.Validate(t.Context(), nil, d.structural, obj, was, celconfig.RuntimeCELCostBudget)
		errs = append(errs, ruled...)
	}
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}
