// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"encoding/base64"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// prepareTyped sets the fields that the server sets when a built-in object is created.
func prepareTyped(r *resource, o object) {
	if r.status && r.kind != "Namespace" {
		delete(o, "status")
	}
	switch r.kind {
	case "Namespace":
		spec := child(o, "spec")
		spec["finalizers"] = []any{"kubernetes"}
		o["status"] = map[string]any{"phase": "Active"}
		labels := child(metadataOf(o), "labels")
		labels["kubernetes.io/metadata.name"] = text(metadataOf(o)["name"])
	case "CustomResourceDefinition":
		prepareCRD(o)
	case "Pod":
		o["status"] = map[string]any{"phase": "Pending", "qosClass": "BestEffort"}
	case "Service":
		o["status"] = map[string]any{"loadBalancer": map[string]any{}}
	case "Deployment", "Job", "CronJob":
		o["status"] = map[string]any{}
	case "StatefulSet":
		o["status"] = map[string]any{"replicas": int64(0), "availableReplicas": int64(0)}
	case "DaemonSet":
		o["status"] = map[string]any{"currentNumberScheduled": int64(0), "desiredNumberScheduled": int64(0), "numberMisscheduled": int64(0), "numberReady": int64(0)}
	}
}

func mergeStringData(o object) {
	plain, ok := o["stringData"].(map[string]any)
	delete(o, "stringData")
	if !ok || len(plain) == 0 {
		return
	}
	data := child(o, "data")
	for k, v := range plain {
		data[k] = base64.StdEncoding.EncodeToString([]byte(text(v)))
	}
}

// child returns the map at name, and creates it if needed.
func child(m map[string]any, name string) map[string]any {
	c, ok := m[name].(map[string]any)
	if !ok {
		c = map[string]any{}
		m[name] = c
	}
	return c
}

func (t *typed) validate(r *resource, o, old object, _ string) error {
	u := &unstructured.Unstructured{Object: o}
	path := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(u, r.namespaced, nameRule(r), path)
	if old != nil {
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(u, &unstructured.Unstructured{Object: old}, path)...)
	}
	switch r.kind {
	case "Secret", "ConfigMap":
		errs = append(errs, validateData(r.kind, o, old)...)
	case "CustomResourceDefinition":
		errs = append(errs, validateCRD(o, old)...)
	case "Deployment", "StatefulSet", "DaemonSet", "Job":
		errs = append(errs, validateSelector(r.kind, o, old)...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(r.gvk().GroupKind(), u.GetName(), errs)
	}
	return nil
}

// nameRule returns the func that validates the names of r's objects.
func nameRule(r *resource) validation.ValidateNameFunc {
	switch {
	case r.kind == "Namespace":
		return validation.ValidateNamespaceName
	case r.kind == "Service":
		return validation.NameIsDNSLabel
	case r.group == "rbac.authorization.k8s.io":
		return func(name string, _ bool) []string {
			if name == "." || name == ".." || strings.ContainsAny(name, "/%") {
				return []string{"may not be '.' or '..' and may not contain '/' or '%'"}
			}
			return nil
		}
	default:
		return validation.NameIsDNSSubdomain
	}
}

func validateData(kind string, o, old object) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for _, name := range []string{"data", "binaryData"} {
		data, _ := o[name].(map[string]any)
		for key, value := range data {
			if len(key) > 253 || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" || key == "." || key == ".." || key == "" {
				errs = append(errs, field.Invalid(field.NewPath(name).Key(key), key, "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"))
			}
			size := len(text(value))
			if kind == "Secret" || name == "binaryData" {
				size = base64.StdEncoding.DecodedLen(size)
			}
			total += size
		}
	}
	if total > 1<<20+2 {
		errs = append(errs, field.TooLong(field.NewPath("data"), "", 1<<20))
	}
	if old != nil {
		errs = append(errs, validateDataUpdate(kind, o, old)...)
	}
	return errs
}

// validateDataUpdate checks that an update does not change the type of a Secret, and that it changes
// neither the data nor the field immutable of an object that is immutable.
func validateDataUpdate(kind string, o, old object) field.ErrorList {
	var errs field.ErrorList
	if kind == "Secret" && !reflect.DeepEqual(o["type"], old["type"]) {
		errs = append(errs, field.Invalid(field.NewPath("type"), o["type"], "field is immutable"))
	}
	if old["immutable"] == true {
		if o["immutable"] != true {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
		}
		for _, name := range []string{"data", "binaryData"} {
			if !reflect.DeepEqual(o[name], old[name]) {
				errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
			}
		}
	}
	return errs
}

// validateSelector checks spec.selector of a Deployment, StatefulSet or DaemonSet: its matchLabels
// must match the labels of the pod template, and an update must not change the selector. It accepts
// every Job.
func validateSelector(kind string, o, old object) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "selector")
	selector, _, _ := unstructured.NestedMap(o, "spec", "selector")
	if kind == "Job" {
		return nil
	}
	if selector == nil {
		return append(errs, field.Required(path, ""))
	}
	labels, _, _ := unstructured.NestedStringMap(o, "spec", "template", "metadata", "labels")
	want, _, _ := unstructured.NestedStringMap(o, "spec", "selector", "matchLabels")
	for k, v := range want {
		if labels[k] != v {
			errs = append(errs, field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), labels, "`selector` does not match template `labels`"))
			break
		}
	}
	if old != nil {
		before, _, _ := unstructured.NestedMap(old, "spec", "selector")
		if !reflect.DeepEqual(selector, before) {
			errs = append(errs, field.Invalid(path, selector, "field is immutable"))
		}
	}
	return errs
}
