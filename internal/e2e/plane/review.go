// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func authorization(resource string) schema.GroupVersionResource {
	return authorizationv1.SchemeGroupVersion.WithResource(resource)
}

// firstRuleReview returns a SubjectAccessReview that asks whether the account may make the first
// request that the first rule of the role covers. It returns nil for a role without rules.
func firstRuleReview(role *unstructured.Unstructured, account string) (*unstructured.Unstructured, error) {
	var typed rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &typed); err != nil {
		return nil, fmt.Errorf("ClusterRole %s: %w", role.GetName(), err)
	}
	if len(typed.Rules) == 0 {
		return nil, nil
	}
	rule := typed.Rules[0]
	review := &authorizationv1.SubjectAccessReview{}
	review.APIVersion, review.Kind = authorizationv1.SchemeGroupVersion.String(), "SubjectAccessReview"
	review.Spec.User = "system:serviceaccount:" + accountsNamespace + ":" + account
	if len(rule.NonResourceURLs) > 0 {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{
			Verb: first(rule.Verbs), Path: first(rule.NonResourceURLs),
		}
	} else {
		resource, subresource, _ := strings.Cut(first(rule.Resources), "/")
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb:        first(rule.Verbs),
			Group:       first(rule.APIGroups),
			Resource:    resource,
			Subresource: subresource,
			Name:        first(rule.ResourceNames),
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: content}, nil
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
