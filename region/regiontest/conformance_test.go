// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"context"
	"testing"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/conformance"
)

func TestConformance(t *testing.T) {
	s := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(s.Close)
	conformance.RunCompacting(t, s.Config(), conformance.Memory, func(context.Context) error {
		s.Compact()
		return nil
	})
}
