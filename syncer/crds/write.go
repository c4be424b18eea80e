// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// manager is the field manager of the definitions.
const manager = "atoll-types"

// define creates or updates a definition, unless existing objects might be rejected afterwards. It returns the state
// that results.
func (p *comparison) define(ctx context.Context, s *side, state State, present, wanted *apiextensionsv1.CustomResourceDefinition) State {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	state.Reason = Defined
	if present != nil && (same(present, wanted) || !present.DeletionTimestamp.IsZero()) {
		return state
	}
	var err error
	switch {
	case present == nil:
		err = s.create(ctx, wanted)
	default:
		why, differences := narrows(present, wanted)
		if why != "" {
			empty, listErr := s.empty(ctx, present)
			if listErr != nil || !empty {
				state.Reason, state.Message = Narrowing, why+", and there are objects"
				if listErr != nil {
					state.Message = why + ", and whether there are objects is not known: " + listErr.Error()
				}
				state.Differences = append(state.Differences, differences...)
				return state
			}
		}
		err = s.update(ctx, present, wanted)
	}
	switch {
	case err == nil:
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		state.Reason, state.Message = Refused, err.Error()
	default: // retried in the next pass
		state.Reason, state.Message = Unknown, err.Error()
	}
	return state
}

// orphan removes a definition that this package created and whose type no other side has any longer, if the rule
// allows that and the type has no objects. It removes nothing if known is false: then a side that may have the type
// did not answer.
func (p *comparison) orphan(ctx context.Context, s *side, present *apiextensionsv1.CustomResourceDefinition, rule Rule, known bool) State {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	state := State{Type: runtimeschema.GroupResource{Group: present.Spec.Group, Resource: present.Spec.Names.Plural}, Side: s.name, Reason: Orphaned}
	switch {
	case !known:
		state.Reason, state.Message = Unknown, "not every side that may have the type has answered"
		return state
	case !present.DeletionTimestamp.IsZero():
		state.Reason = Removed
		return state
	case !rule.Remove:
		state.Message = "no other side has the type any longer, and the policy does not remove it"
		return state
	}
	empty, err := s.empty(ctx, present)
	switch {
	case err != nil:
		state.Message = "whether there are objects is not known: " + err.Error()
		return state
	case !empty:
		state.Message = "no other side has the type any longer, but there are objects"
		return state
	}
	err = s.client().Delete(ctx, present.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &present.UID, ResourceVersion: &present.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		state.Message = err.Error()
		return state
	}
	state.Reason = Removed
	return state
}

// empty reports whether the type of a definition has no objects in any namespace.
func (s *side) empty(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		gvr := runtimeschema.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name, Resource: crd.Spec.Names.Plural}
		list, err := s.api.Metadata().Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return false, err
		}
		return len(list.Items) == 0, nil
	}
	return false, fmt.Errorf("%s: no version is served", crd.Name)
}

func (s *side) create(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	object, err := encode(crd)
	if err != nil {
		return err
	}
	_, err = s.client().Create(ctx, object, metav1.CreateOptions{FieldManager: manager})
	return err
}

func (s *side) update(ctx context.Context, present, wanted *apiextensionsv1.CustomResourceDefinition) error {
	next := present.DeepCopy()
	next.Spec = *wanted.Spec.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	for k, v := range wanted.Annotations {
		next.Annotations[k] = v
	}
	object, err := encode(next)
	if err != nil {
		return err
	}
	_, err = s.client().Update(ctx, object, metav1.UpdateOptions{FieldManager: manager})
	return err
}

func encode(crd *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	crd = crd.DeepCopy()
	crd.APIVersion, crd.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", crd.Name, err)
	}
	unstructured.RemoveNestedField(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
	return &unstructured.Unstructured{Object: object}, nil
}
