// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"encoding/json"
	"fmt"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkOptions validates dryRun, fieldManager and fieldValidation in the query of a creation or an
// update.
func (c *call) checkOptions() error {
	path := field.NewPath
	var errs field.ErrorList
	errs = append(errs, metav1validation.ValidateDryRun(path("dryRun"), c.query["dryRun"])...)
	errs = append(errs, metav1validation.ValidateFieldManager(c.FieldManager, path("fieldManager"))...)
	errs = append(errs, metav1validation.ValidateFieldValidation(path("fieldValidation"), c.query.Get("fieldValidation"))...)
	if len(errs) == 0 {
		return nil
	}
	kind := map[string]string{"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}[c.Verb]
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

func (c *call) checkPatchOptions(kind types.PatchType) error {
	options := metav1.PatchOptions{FieldManager: c.FieldManager, FieldValidation: c.query.Get("fieldValidation"), DryRun: c.query["dryRun"]}
	if f := c.query.Get("force"); f != "" {
		options.Force = new(f == "true" || f == "1")
	}
	if errs := metav1validation.ValidatePatchOptions(&options, kind); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	return nil
}

// deleteOptions returns the options of a deletion, from the body (in JSON or protobuf) or, without a
// body, from the query. It sets c.DryRun if the options require a dry run.
func (c *call) deleteOptions() (*metav1.DeleteOptions, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	options := &metav1.DeleteOptions{}
	switch {
	case len(data) > 0 && isProtobuf(data):
		scheme := runtime.NewScheme()
		metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
		metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
		if _, _, err := protobuf.NewSerializer(scheme, scheme).Decode(data, nil, options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case len(data) > 0:
		if err := json.Unmarshal(data, options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if options.Kind != "" && options.Kind != "DeleteOptions" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("no kind %q is registered for the internal version of group %q", options.Kind, "meta.k8s.io"))
		}
	default:
		options.DryRun = c.query["dryRun"]
		if p := c.query.Get("propagationPolicy"); p != "" {
			options.PropagationPolicy = new(metav1.DeletionPropagation(p))
		}
	}
	if errs := metav1validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	c.DryRun = c.DryRun || len(options.DryRun) > 0
	return options, nil
}

func isProtobuf(data []byte) bool {
	return len(data) > 4 && string(data[:3]) == "k8s" && !unicode.IsPrint(rune(data[3]))
}
