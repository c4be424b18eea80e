// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"sigs.k8s.io/yaml"
)

// ruleCase is one write and its expected result.
type ruleCase struct {
	name string
	old  string // spec before the write, in YAML; empty for a create
	spec string // spec after it
	want string // part of the message of the rule that refuses it; empty: accepted
}

// ruleCases returns the cases of each CRD.
func ruleCases() map[string][]ruleCase {
	return map[string][]ruleCase{
		"serviceclusters.kubecarrier.io":              slices.Concat(protocolCases(onceKind), serviceClusterCases),
		"regionclaims.kubecarrier.io":                 slices.Concat(protocolCases(onceKind), regionClaimCases),
		"accounts.catalog.kubecarrier.io":             slices.Concat(protocolCases(everywhereKind), accountCases),
		"peersets.fanout.atoll.dev":                   peerSetCases,
		"operations.fanout.atoll.dev":                 operationCases,
		"synctargets.workload.kcp.io":                 syncTargetCases,
		"clusterdaemonsets.splitter.atoll.dev":        clusterDaemonSetCases,
		"placementpolicies.splitter.atoll.dev":        placementPolicyCases,
		"workloadtypes.splitter.atoll.dev":            workloadTypeCases,
		"clusterplacementpolicies.splitter.atoll.dev": clusterPlacementPolicyCases,
	}
}

func TestRules(t *testing.T) {
	for crd, cases := range ruleCases() {
		t.Run(crd, func(t *testing.T) {
			v := validatorFor(t, crd, nil)
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					refusals := c.judge(t, v)
					if c.want == "" {
						require.Empty(t, refusals)
						return
					}
					require.NotEmpty(t, refusals, "accepted")
					require.Contains(t, strings.Join(refusals, "\n"), c.want)
				})
			}
		})
	}
}

// TestEveryRuleMatters removes one rule at a time from each CRD. A write that the rule refuses must
// then be accepted; otherwise the rule is superfluous or untested.
func TestEveryRuleMatters(t *testing.T) {
	cases := ruleCases()
	for _, crd := range crdNames(t) {
		for i, rule := range rulesOf(schemaOf(t, crd)) {
			t.Run(crd+"/"+rule.Message, func(t *testing.T) {
				v := validatorFor(t, crd, func(props *apiextensions.JSONSchemaProps) {
					*rulesOf(props)[i] = apiextensions.ValidationRule{Rule: "true"}
				})
				require.True(t, slices.ContainsFunc(cases[crd], func(c ruleCase) bool {
					return c.want != "" && len(c.judge(t, v)) == 0
				}), "no case fails without the rule: %s", rule.Rule)
			})
		}
	}
}

// judge returns the errors with which v refuses the write.
func (c ruleCase) judge(t *testing.T, v *validator) []string {
	t.Helper()
	var refusals []string
	if c.old == "" {
		for _, err := range v.create(t, object(t, c.spec)) {
			refusals = append(refusals, err.Error())
		}
		return refusals
	}
	for _, err := range v.update(t, object(t, c.spec), object(t, c.old)) {
		refusals = append(refusals, err.Error())
	}
	return refusals
}

// object returns an object with the given spec; "absent" omits the spec.
func object(t *testing.T, spec string) map[string]any {
	t.Helper()
	obj := map[string]any{"metadata": map[string]any{"name": "x"}}
	if spec != "absent" {
		var parsed map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(spec), &parsed), spec)
		obj["spec"] = integers(parsed)
		if _, ok := parsed["resource"]; ok {
			obj["metadata"] = map[string]any{"name": "rollouts.argoproj.io"} // of a WorkloadType
		}
	}
	return obj
}

// integers converts floats to int64, because an API server decodes whole numbers as
// int64. v must not contain fractions.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		return int64(v)
	}
	return v
}

// rulesOf returns all rules of a schema, in a stable order.
func rulesOf(props *apiextensions.JSONSchemaProps) []*apiextensions.ValidationRule {
	var rules []*apiextensions.ValidationRule
	for i := range props.XValidations {
		rules = append(rules, &props.XValidations[i])
	}
	names := make([]string, 0, len(props.Properties))
	for name := range props.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		property := props.Properties[name]
		rules = append(rules, rulesOf(&property)...)
		props.Properties[name] = property
	}
	if props.Items != nil && props.Items.Schema != nil {
		rules = append(rules, rulesOf(props.Items.Schema)...)
	}
	return rules
}
