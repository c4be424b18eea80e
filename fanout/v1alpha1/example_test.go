// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
)

func ExampleSchema() {
	field, rules, err := v1alpha1.Schema()
	if err != nil {
		fmt.Println(err)
		return
	}
	// The schema of spec in the CRD of a kind of one's own.
	spec := map[string]any{
		"type":    "object",
		"default": map[string]any{},
		"properties": map[string]any{
			"color":  map[string]any{"type": "string"},
			"fanout": field,
		},
		"x-kubernetes-validations": rules,
	}
	fmt.Println(len(spec["x-kubernetes-validations"].([]map[string]any)), "rules at spec")
	fmt.Println(len(field["x-kubernetes-validations"].([]any)), "rules at spec.fanout")
	// Output:
	// 3 rules at spec
	// 11 rules at spec.fanout
}
