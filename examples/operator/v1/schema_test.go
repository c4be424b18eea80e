// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// The CRD has the schema and the rules of the claim, as fanout/v1alpha1 returns them. go generate writes the CRD.
func TestTheSchemaHasTheClaim(t *testing.T) {
	field, rules, err := fanoutv1alpha1.Schema()
	require.NoError(t, err)
	crd, err := CRD()
	require.NoError(t, err)
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]

	var claim apiextensionsv1.JSONSchemaProps
	data, err := json.Marshal(field)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &claim))
	claim.Description = spec.Properties["fanout"].Description
	require.Equal(t, claim, spec.Properties["fanout"])

	var want apiextensionsv1.ValidationRules
	data, err = json.Marshal(rules)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &want))
	for _, rule := range want {
		require.Contains(t, spec.XValidations, rule)
	}
	require.NotNil(t, spec.Default, "without it a client that leaves spec out avoids the rules")
}
