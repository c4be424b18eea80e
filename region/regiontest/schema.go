// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"context"
	"fmt"
	"reflect"
	"sync"

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// custom is one version of a custom type; the schema rules are apiextensions-apiserver's own.
type custom struct {
	structural  *structuralschema.Structural
	whole       schemavalidation.SchemaValidator
	status      schemavalidation.SchemaValidator // nil without a schema for status
	expressions *cel.Validator                   // nil without rules
	preserve    bool                             // spec.preserveUnknownFields of the CRD

	hashing sync.Once
	hash    string // of the OpenAPI schema
}

// newCustom compiles the schema of one version.
func newCustom(crd *apiextensionsv1.CustomResourceDefinition, version *apiextensionsv1.CustomResourceDefinitionVersion) (*custom, error) {
	external := version.Schema
	if external == nil || external.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("spec.versions[%s].schema.openAPIV3Schema: Required value: schemas are required", version.Name)
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(external.OpenAPIV3Schema, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	if errs := structuralschema.ValidateStructural(nil, structural); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	c := &custom{structural: structural, preserve: crd.Spec.PreserveUnknownFields}
	if c.whole, _, err = schemavalidation.NewSchemaValidator(&internal); err != nil {
		return nil, err
	}
	if status, ok := internal.Properties["status"]; ok {
		if c.status, _, err = schemavalidation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	c.expressions = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return c, nil
}

func (t *custom) normalize(o object) (object, []string, error) {
	unknown, err := t.coerce(o)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	t.fillDefaults(o)
	for i, path := range unknown {
		unknown[i] = fmt.Sprintf("unknown field %q", path)
	}
	return o, unknown, nil
}

// coerce drops fields that are not in the schema, as the real server does when it decodes, and
// returns their paths.
func (t *custom) coerce(o object) ([]string, error) {
	kind, apiVersion := o["kind"], o["apiVersion"]
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(o, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	if !t.preserve {
		unknown = append(unknown, pruning.PruneWithOptions(o, t.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
		defaulting.PruneNonNullableNullsWithoutDefaults(o, t.structural)
	}
	coerceErr, paths := objectmeta.CoerceWithOptions(nil, o, t.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if coerceErr != nil {
		return nil, coerceErr
	}
	o["kind"], o["apiVersion"] = kind, apiVersion
	if found {
		if err := objectmeta.SetObjectMeta(o, meta); err != nil {
			return nil, err
		}
	}
	return append(unknown, paths...), nil
}

func (t *custom) fillDefaults(o object) { defaulting.Default(o, t.structural) }

func (t *custom) prepare(*resource, object, object) {}

func (t *custom) validate(r *resource, o, old object, subresource string) error {
	u := &unstructured.Unstructured{Object: o}
	path := field.NewPath("metadata")
	var errs field.ErrorList
	if u.GetKind() != r.kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), u.GetKind(), "must be "+r.kind))
		return apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), errs)
	}
	if old == nil {
		errs = metavalidation.ValidateObjectMetaAccessor(u, r.namespaced, metavalidation.NameIsDNSSubdomain, path)
		errs = append(errs, schemavalidation.ValidateCustomResource(nil, o, t.whole)...)
		errs = append(errs, validateMetadata(o, t.structural)...)
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, t.structural, o)...)
		errs = t.validateRules(errs, o, nil)
	} else {
		errs = t.validateUpdate(u, &unstructured.Unstructured{Object: old}, subresource)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(r.gvk().GroupKind(), u.GetName(), errs)
	}
	return nil
}

func (t *custom) validateUpdate(u, old *unstructured.Unstructured, subresource string) field.ErrorList {
	correlated := common.NewCorrelatedObject(u.Object, old.Object, &model.Structural{Structural: t.structural})
	ratchet := schemavalidation.WithRatcheting(correlated)
	errs := metavalidation.ValidateObjectMetaAccessorUpdate(u, old, field.NewPath("metadata"))
	if subresource == "status" {
		if status, ok := u.Object["status"]; ok && t.status != nil {
			at := schemavalidation.WithRatcheting(correlated.Key("status"))
			errs = append(errs, schemavalidation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old.Object["status"], t.status, at)...)
		}
	} else {
		errs = append(errs, metavalidation.ValidateObjectMetaAccessor(u, u.GetNamespace() != "", metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
		errs = append(errs, schemavalidation.ValidateCustomResourceUpdate(nil, u.Object, old.Object, t.whole, ratchet)...)
		errs = append(errs, validateMetadata(u.Object, t.structural)...)
	}
	if before := listtype.ValidateListSetsAndMaps(nil, t.structural, old.Object); len(before) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, t.structural, u.Object)...)
	}
	return t.validateRules(errs, u.Object, old.Object, cel.WithRatcheting(correlated))
}

// validateRules runs the CEL rules and appends their errors to errs. As in a real server, it does
// not run them if errs shows that the object does not fit its schema.
func (t *custom) validateRules(errs field.ErrorList, o, old object, opts ...cel.Option) field.ErrorList {
	if t.expressions == nil {
		return errs
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		}
	}
	var before any // an untyped nil means a creation
	if old != nil {
		before = old
	}
	found, _ := t.expressions.Validate(context.Background(), nil, t.structural, o, before, celconfig.RuntimeCELCostBudget, opts...)
	return append(errs, found...)
}

// changed reports whether the step from old to o increments the generation.
func (r *resource) changed(o, old object) bool {
	if r.annotations && !reflect.DeepEqual(metadataOf(o)["annotations"], metadataOf(old)["annotations"]) {
		return true
	}
	return !reflect.DeepEqual(withoutMetadata(o, !r.custom()), withoutMetadata(old, !r.custom()))
}
