// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"

	"github.com/atoll-dev/atoll/config"
)

// TestCRDsAreSound makes the checks of an API server on each CRD that need no
// server: a structural schema and defaults that fit it. TestEveryRuleMatters
// compiles every rule; what they may cost a real API server judges.
func TestCRDsAreSound(t *testing.T) {
	crds, err := config.CRDs()
	require.NoError(t, err)
	require.Len(t, crds, 11)
	for _, crd := range crds {
		t.Run(crd.GetName(), func(t *testing.T) {
			require.Equal(t, config.SchemaVersion, crd.GetLabels()[config.SchemaVersionLabel])
			typed, err := config.CRD(crd.GetName())
			require.NoError(t, err)
			require.Contains(t, typed.Spec.Names.Categories, "atoll")
			require.NotEmpty(t, typed.Spec.Versions[0].AdditionalPrinterColumns)

			structural, err := structuralschema.NewStructural(schemaOf(t, crd.GetName()))
			require.NoError(t, err)
			require.Empty(t, structuralschema.ValidateStructural(nil, structural))
			errs, err := defaulting.ValidateDefaults(t.Context(), nil, structural, true, true)
			require.NoError(t, err)
			require.Empty(t, errs)
		})
	}
}

// crdNames returns the names of all CRDs.
func crdNames(t *testing.T) []string {
	t.Helper()
	crds, err := config.CRDs()
	require.NoError(t, err)
	names := make([]string, 0, len(crds))
	for _, crd := range crds {
		names = append(names, crd.GetName())
	}
	return names
}
