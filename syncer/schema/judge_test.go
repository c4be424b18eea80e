// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// judge admits objects as kube-apiserver does, with the packages of kube-apiserver.
type judge struct {
	structural *structuralschema.Structural
	validator  schemavalidation.SchemaValidator
	rules      *cel.Validator
	lax        bool // accepts a list for a string with a format, as kube-apiserver does
}

func newJudge(s *apiextensionsv1.JSONSchemaProps) (*judge, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s.DeepCopy(), &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	if errs := structuralschema.ValidateStructural(nil, structural); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	j := &judge{structural: structural}
	if j.validator, _, err = schemavalidation.NewSchemaValidator(&internal); err != nil {
		return nil, err
	}
	j.rules = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return j, nil
}

// validateMeta calls objectmeta.Validate, which has a context since v0.37.
func validateMeta(o map[string]any, s *structuralschema.Structural) field.ErrorList {
	switch validate := any(objectmeta.Validate).(type) {
	case func(*field.Path, any, *structuralschema.Structural, bool) field.ErrorList:
		return validate(nil, o, s, true)
	case func(context.Context, *field.Path, any, *structuralschema.Structural, bool) field.ErrorList:
		return validate(context.Background(), nil, o, s, true)
	default:
		panic("objectmeta.Validate has changed")
	}
}

// admit returns the object as stored, and the fields that were dropped.
func (j *judge) admit(o map[string]any) (map[string]any, []string, error) {
	stored := runtime.DeepCopyJSON(o)
	unknown := pruning.PruneWithOptions(stored, j.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(stored, j.structural)
	if err := objectmeta.Coerce(nil, stored, j.structural, false, false); err != nil {
		return nil, unknown, err
	}
	defaulting.Default(stored, j.structural)
	errs := schemavalidation.ValidateCustomResource(nil, stored, j.validator)
	errs = append(errs, validateMeta(stored, j.structural)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, j.structural, stored)...)
	if !j.lax {
		errs = append(errs, lists(stored, j.structural, nil)...)
	}
	if len(errs) == 0 && j.rules != nil {
		found, _ := j.rules.Validate(context.Background(), nil, j.structural, stored, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, found...)
	}
	return stored, unknown, errs.ToAggregate()
}

// lists returns an error for each list in place of a string. kube-apiserver does not check the type where a string has
// a format and the value is a list. So one side can store a list, and another side whose string has no format rejects
// it. Negotiation does not cover this case.
func lists(value any, s *structuralschema.Structural, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	switch value := value.(type) {
	case []any:
		if s.Type == "string" {
			return field.ErrorList{field.TypeInvalid(path, value, "is a list, not a string")}
		}
		for i, v := range value {
			errs = append(errs, lists(v, s.Items, path.Index(i))...)
		}
	case map[string]any:
		for name, v := range value {
			if property, ok := s.Properties[name]; ok {
				errs = append(errs, lists(v, &property, path.Child(name))...)
			} else if s.AdditionalProperties != nil {
				errs = append(errs, lists(v, s.AdditionalProperties.Structural, path.Key(name))...)
			}
		}
	}
	return errs
}

// defaults returns an error for each list in place of a string in the defaults of a schema.
func defaults(s *structuralschema.Structural, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := lists(s.Default.Object, s, path)
	for name, property := range s.Properties {
		errs = append(errs, defaults(&property, path.Child(name))...)
	}
	if s.AdditionalProperties != nil {
		errs = append(errs, defaults(s.AdditionalProperties.Structural, path.Key("*"))...)
	}
	return append(errs, defaults(s.Items, path.Key("*"))...)
}

// installable checks that kube-apiserver accepts a schema in a CRD. It uses the packages of kube-apiserver, and
// wellFormed for the remaining checks.
func installable(s *apiextensionsv1.JSONSchemaProps) error {
	j, err := newJudge(s)
	if err != nil {
		return err
	}
	errs, err := defaulting.ValidateDefaults(context.Background(), nil, j.structural, true, true)
	if err != nil {
		return err
	}
	errs = append(errs, defaults(j.structural, nil)...)
	errs = append(errs, compile(j.structural, nil, true)...)
	errs = append(errs, wellFormed(s, nil)...)
	return errs[:min(len(errs), 5)].ToAggregate()
}

// compile compiles all rules.
func compile(s *structuralschema.Structural, path *field.Path, root bool) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if len(s.XValidations) > 0 {
		results, err := cel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit, environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
		if err != nil {
			errs = append(errs, field.InternalError(path, err))
		}
		for i, r := range results {
			if r.Error != nil {
				errs = append(errs, field.Invalid(path.Child("x-kubernetes-validations").Index(i), s.XValidations[i].Rule, r.Error.Detail))
			}
		}
	}
	for name, property := range s.Properties {
		errs = append(errs, compile(&property, path.Child(name), property.XEmbeddedResource)...)
	}
	errs = append(errs, compile(s.Items, path.Child("items"), s.Items != nil && s.Items.XEmbeddedResource)...)
	if s.AdditionalProperties != nil {
		errs = append(errs, compile(s.AdditionalProperties.Structural, path.Child("additionalProperties"), false)...)
	}
	return errs
}

// wellFormed makes kube-apiserver's checks of lists and maps in CRDs.
func wellFormed(s *apiextensionsv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	wrong := func(format string, args ...any) {
		errs = append(errs, field.Invalid(path, "", fmt.Sprintf(format, args...)))
	}
	rest := s.AdditionalProperties
	if rest != nil && len(s.Properties) > 0 && (!rest.Allows || rest.Schema != nil) {
		wrong("additionalProperties and properties are mutual exclusive")
	}
	if s.UniqueItems {
		wrong("uniqueItems cannot be set to true")
	}
	if s.XPreserveUnknownFields != nil && !*s.XPreserveUnknownFields {
		wrong("x-kubernetes-preserve-unknown-fields must be true or undefined")
	}
	if s.XMapType != nil && s.Type != "object" {
		wrong("x-kubernetes-map-type needs an object")
	}
	if s.XListType != nil {
		if s.Type != "array" {
			wrong("x-kubernetes-list-type needs an array")
			return errs
		}
		item := s.Items.Schema
		if *s.XListType != "atomic" && item.Nullable {
			wrong("items of a %s must not be nullable", *s.XListType)
		}
		if *s.XListType == "set" && (item.Type == "array" && item.XListType != nil && *item.XListType != "atomic" || item.Type == "object" && (item.XMapType == nil || *item.XMapType != "atomic")) {
			wrong("items of a set must be atomic")
		}
		if (*s.XListType == "map") != (len(s.XListMapKeys) > 0) {
			wrong("the keys do not match the list type")
		}
		for _, k := range s.XListMapKeys {
			property, ok := item.Properties[k]
			switch {
			case item.Type != "object" || !ok || property.Type == "array" || property.Type == "object":
				wrong("key %s is not a scalar property of items", k)
			case property.Default == nil && !slices.Contains(item.Required, k):
				wrong("key %s is neither required nor has it a default", k)
			case property.Nullable:
				wrong("key %s is nullable", k)
			}
		}
	} else if len(s.XListMapKeys) > 0 {
		wrong("keys without a list type")
	}
	for name, property := range s.Properties {
		errs = append(errs, wellFormed(&property, path.Child(name))...)
	}
	if s.Items != nil {
		errs = append(errs, wellFormed(s.Items.Schema, path.Child("items"))...)
	}
	if rest != nil {
		errs = append(errs, wellFormed(rest.Schema, path.Child("additionalProperties"))...)
	}
	return errs
}

// schemaOf reads a schema from YAML.
func schemaOf(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	out := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "\t", "  ")), out); err != nil {
		t.Fatalf("schema: %v\n%s", err, text)
	}
	return out
}

func show(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
