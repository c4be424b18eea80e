// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance_test judges a real kube-apiserver by the list that the server in memory is judged by.
package conformance_test

import (
	"os"
	"testing"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region/regiontest/conformance"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

func TestRealServer(t *testing.T) {
	p := planetest.New(t, plane.Options{})
	conformance.Run(t, p.Config(), conformance.Real)
}
