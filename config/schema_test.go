// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	celmodel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/atoll-dev/atoll/config"
)

// An API server refuses a CRD if the estimated cost of one rule, or of all
// rules together, exceeds these limits.
const (
	ruleCostLimit = 10_000_000
	crdCostLimit  = 100_000_000
)

// TestCRDsAreSound checks each CRD as an API server does, as far as that needs no server: the
// schema is structural, defaults are valid, rules compile, and their estimated cost is within the
// limits. Each CRD also has the label with the schema version, the category atoll, and printer
// columns.
func TestCRDsAreSound(t *testing.T) {
	crds, err := config.CRDs()
	require.NoError(t, err)
	require.Len(t, crds, 13)
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

			total := cost(t, structural, model.SchemaDeclType(structural, true), 1)
			require.Less(t, total, uint64(crdCostLimit))
			t.Logf("rules cost at most %d of %d", total, crdCostLimit)
		})
	}
}

// cost returns the estimated cost of the rules at and below s, if s occurs the
// given number of times.
func cost(t *testing.T, s *structuralschema.Structural, decl *celmodel.DeclType, times uint64) uint64 {
	t.Helper()
	results, err := cel.Compile(s, decl, celconfig.PerCallLimit,
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
	require.NoError(t, err)
	var total uint64
	for i, r := range results {
		require.Nil(t, r.Error, "%s: %v", s.XValidations[i].Rule, r.Error)
		require.Nil(t, r.MessageExpressionError, "%s", s.XValidations[i].MessageExpression)
		require.Less(t, r.MaxCost*times, uint64(ruleCostLimit), s.XValidations[i].Rule)
		require.Less(t, r.MessageExpressionMaxCost, uint64(ruleCostLimit), s.XValidations[i].MessageExpression)
		total += r.MaxCost * times
	}
	for name, property := range s.Properties {
		if field, ok := decl.Fields[name]; ok {
			total += cost(t, &property, field.Type, times)
		}
	}
	if s.Items != nil && decl != nil && decl.ElemType != nil {
		items := uint64(1000)
		if s.ValueValidation != nil && s.ValueValidation.MaxItems != nil {
			items = uint64(*s.ValueValidation.MaxItems)
		}
		total += cost(t, s.Items, decl.ElemType, times*items)
	}
	return total
}

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
