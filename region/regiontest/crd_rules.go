// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// validateRules compiles the CEL rules of a version and checks its defaults.
func validateRules(v *apiextensionsv1.CustomResourceDefinitionVersion, path *field.Path) field.ErrorList {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	s, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	errs := compileRules(s, path, true)
	defaults, err := defaulting.ValidateDefaults(context.Background(), path, s, true, true)
	if err != nil {
		return append(errs, field.InternalError(path, err))
	}
	return append(errs, defaults...)
}

func compileRules(s *structuralschema.Structural, path *field.Path, root bool) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if len(s.XValidations) > 0 {
		rules := path.Child("x-kubernetes-validations")
		results, err := cel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit, environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
		if err != nil {
			return append(errs, field.InternalError(rules, err))
		}
		for i, result := range results {
			if result.Error != nil {
				errs = append(errs, field.Invalid(rules.Index(i).Child("rule"), s.XValidations[i], result.Error.Detail))
			}
			if result.MessageExpressionError != nil {
				errs = append(errs, field.Invalid(rules.Index(i).Child("messageExpression"), s.XValidations[i], result.MessageExpressionError.Detail))
			}
		}
	}
	for name, property := range s.Properties {
		errs = append(errs, compileRules(&property, path.Child("properties").Key(name), property.XEmbeddedResource)...)
	}
	errs = append(errs, compileRules(s.Items, path.Child("items"), s.Items != nil && s.Items.XEmbeddedResource)...)
	if s.AdditionalProperties != nil {
		errs = append(errs, compileRules(s.AdditionalProperties.Structural, path.Child("additionalProperties"), false)...)
	}
	return errs
}
