// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

// reviewed is a region's answer to a review. If status and err are nil, the review was not about this region.
type reviewed struct {
	region region.Key
	status map[string]any
	err    error
}

func (r reviewed) text(field string) string { s, _ := r.status[field].(string); return s }

func (r reviewed) is(field string) bool { b, _ := r.status[field].(bool); return b }

// divide divides answers into those with a status and the names of regions that did not answer. The error is the refusal
// of a region, such as a 403.
func divide(all []reviewed) (answered []reviewed, silent []string, err error) {
	for _, a := range all {
		switch status, refused := statusOf(a.err); {
		case refused:
			status.Message = fmt.Sprintf("region %s: %s", a.region, status.Message)
			return nil, nil, &apierrors.StatusError{ErrStatus: status}
		case a.err != nil:
			silent = append(silent, a.region.String())
		case a.status != nil:
			answered = append(answered, a)
		}
	}
	return answered, silent, nil
}

// unknown returns the 503 for a review that regions did not answer.
func unknown(silent []string) error {
	err := apierrors.NewServiceUnavailable("not known: no answer from region " + strings.Join(silent, ", "))
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// accessIn merges the answers to a SelfSubjectAccessReview. The caller has a right over all regions if every region
// grants it.
func accessIn(all []reviewed) (map[string]any, error) {
	answered, silent, err := divide(all)
	if err != nil {
		return nil, err
	}
	var granted, refused, errors []string
	denied := false
	for _, a := range answered {
		reason := fmt.Sprintf("region %s: %s", a.region, a.text("reason"))
		if a.is("allowed") {
			granted = append(granted, strings.TrimSuffix(reason, ": "))
		} else {
			refused = append(refused, strings.TrimSuffix(reason, ": "))
		}
		denied = denied || a.is("denied")
		if text := a.text("evaluationError"); text != "" {
			errors = append(errors, fmt.Sprintf("region %s: %s", a.region, text))
		}
	}
	status := map[string]any{"allowed": len(granted) > 0 && len(refused) == 0}
	switch {
	case len(refused) > 0:
		status["reason"] = "refused by " + strings.Join(refused, "; ")
		for _, k := range silent {
			errors = append(errors, "region "+k+": no answer")
		}
	case len(silent) > 0:
		return nil, unknown(silent)
	case len(granted) == 0:
		status["reason"] = "no region has it"
	default:
		status["reason"] = "granted by " + strings.Join(granted, "; ")
	}
	if denied {
		status["denied"] = true
	}
	if errors != nil {
		status["evaluationError"] = strings.Join(errors, "; ")
	}
	return status, nil
}

// rulesIn merges the answers to a SelfSubjectRulesReview into the rules that every region has. If a region has others,
// the answer is incomplete and names the region.
func rulesIn(all []reviewed) (map[string]any, error) {
	answered, silent, err := divide(all)
	if err != nil {
		return nil, err
	}
	if len(silent) > 0 || len(answered) == 0 {
		return nil, unknown(silent)
	}
	status, incomplete := map[string]any{}, false
	var others []string
	for _, a := range answered {
		incomplete = incomplete || a.is("incomplete")
		if text := a.text("evaluationError"); text != "" {
			others = append(others, fmt.Sprintf("region %s: %s", a.region, text))
		}
	}
	for field, parts := range map[string][]string{
		"resourceRules":    {"verbs", "apiGroups", "resources", "resourceNames"},
		"nonResourceRules": {"verbs", "nonResourceURLs"},
	} {
		own := make([]map[string]map[string]any, len(answered))
		for i, a := range answered {
			own[i] = rulesOf(a.status, field, parts)
		}
		common := maps.Clone(own[0])
		for _, rules := range own[1:] {
			maps.DeleteFunc(common, func(rule string, _ map[string]any) bool { return rules[rule] == nil })
		}
		for i, a := range answered {
			if more := len(own[i]) - len(common); more > 0 {
				incomplete = true
				others = append(others, fmt.Sprintf("region %s has %d more %s", a.region, more, field))
			}
		}
		list := make([]any, 0, len(common))
		for _, rule := range slices.Sorted(maps.Keys(common)) {
			list = append(list, common[rule])
		}
		status[field] = list
	}
	slices.Sort(others)
	status["incomplete"] = incomplete
	if others != nil {
		status["evaluationError"] = strings.Join(others, "; ")
	}
	return status, nil
}

// rulesOf returns the rules in a field of status, each for one combination of the values of its parts.
func rulesOf(status map[string]any, field string, parts []string) map[string]map[string]any {
	single := map[string]map[string]any{}
	list, _, _ := unstructured.NestedSlice(status, field)
	for _, item := range list {
		rule, _ := item.(map[string]any)
		combined := []map[string]any{{}}
		for _, part := range parts {
			values, _, _ := unstructured.NestedStringSlice(rule, part)
			if len(values) == 0 {
				continue
			}
			var next []map[string]any
			for _, so := range combined {
				for _, value := range values {
					with := maps.Clone(so)
					with[part] = []any{value}
					next = append(next, with)
				}
			}
			combined = next
		}
		for _, rule := range combined {
			single[fmt.Sprint(rule)] = rule
		}
	}
	return single
}

// subjectIn merges the answers to a SelfSubjectReview: the fields of the caller that all regions agree on. The error is a
// Conflict if they disagree on the name.
func subjectIn(all []reviewed) (map[string]any, error) {
	answered, silent, err := divide(all)
	if err != nil {
		return nil, err
	}
	if len(silent) > 0 || len(answered) == 0 {
		return nil, unknown(silent)
	}
	info := func(a reviewed) map[string]any { m, _, _ := unstructured.NestedMap(a.status, "userInfo"); return m }
	common := info(answered[0])
	groups, _, _ := unstructured.NestedStringSlice(common, "groups")
	for _, a := range answered[1:] {
		own := info(a)
		if own["username"] != common["username"] {
			return nil, apierrors.NewConflict(schema.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}, "", fmt.Errorf(
				"the caller is %v in region %s and %v in region %s", common["username"], answered[0].region, own["username"], a.region))
		}
		theirs, _, _ := unstructured.NestedStringSlice(own, "groups")
		groups = slices.DeleteFunc(groups, func(g string) bool { return !slices.Contains(theirs, g) })
		for _, field := range []string{"uid", "extra"} {
			if !reflect.DeepEqual(own[field], common[field]) {
				delete(common, field)
			}
		}
	}
	delete(common, "groups")
	if len(groups) > 0 {
		list := make([]any, len(groups))
		for i, g := range groups {
			list[i] = g
		}
		common["groups"] = list
	}
	return map[string]any{"userInfo": common}, nil
}
