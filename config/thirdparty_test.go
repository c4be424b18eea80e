// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// thirdParty returns the schema of a kind outside this module, with the field
// spec.fanout and its rules.
func thirdParty(t *testing.T) *apiextensions.JSONSchemaProps {
	t.Helper()
	field, rules, err := fanoutv1alpha1.Schema()
	require.NoError(t, err)
	data, err := json.Marshal(map[string]any{
		"type": "object",
		"properties": map[string]any{
			"metadata": map[string]any{"type": "object"},
			"spec": map[string]any{
				"type":                     "object",
				"default":                  map[string]any{},
				"properties":               map[string]any{"fanout": field, "color": map[string]any{"type": "string"}},
				"x-kubernetes-validations": rules,
			},
		},
	})
	require.NoError(t, err)
	parsed := &apiextensionsv1.JSONSchemaProps{}
	require.NoError(t, json.Unmarshal(data, parsed))
	props := &apiextensions.JSONSchemaProps{}
	require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(parsed, props, nil))
	return props
}

// TestThirdPartySchema checks the schema that fanout/v1alpha1 offers to CRDs
// outside this module: spec.fanout is equal to the field in our CRDs, the cost
// of the rules is within the limits, and the rules accept and refuse the writes
// of protocolCases.
func TestThirdPartySchema(t *testing.T) {
	props := thirdParty(t)
	for _, name := range []string{"serviceclusters.kubecarrier.io", "regionclaims.kubecarrier.io", accounts} {
		ours := schemaOf(t, name).Properties["spec"].Properties["fanout"]
		theirs := props.Properties["spec"].Properties["fanout"]
		require.Equal(t, ours, theirs, "%s: run go generate ./config", name)
	}
	structural, err := structuralschema.NewStructural(props)
	require.NoError(t, err)
	require.Empty(t, structuralschema.ValidateStructural(nil, structural))
	require.Less(t, cost(t, structural, model.SchemaDeclType(structural, true), 1), uint64(crdCostLimit))

	v := validatorOf(t, props)
	for _, k := range []kind{onceKind, everywhereKind} {
		for _, c := range protocolCases(k) {
			t.Run(k.committed+"/"+c.name, func(t *testing.T) {
				refusals := strings.Join(c.judge(t, v), "\n")
				want := strings.NewReplacer("Primary and Configured at once", "committed Primary at once", "Primary and Active at once", "committed Primary at once").Replace(c.want)
				if want == "" {
					require.Empty(t, refusals)
					return
				}
				require.Contains(t, refusals, want)
			})
		}
	}
	adoption := ruleCase{old: "{color: red}", spec: "{color: red, fanout: {" + primary + ", stage: Configured}}"}
	require.Empty(t, adoption.judge(t, v))
}
