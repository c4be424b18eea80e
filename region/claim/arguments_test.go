// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/claim"
)

// If an argument is missing, the function does not panic, and its error names the argument.
func TestArguments(t *testing.T) {
	api, err := region.APIFor(&rest.Config{Host: "https://plane.invalid"})
	require.NoError(t, err)
	var nilConn *region.Conn
	var nilRing *region.Ring
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New Directory", "Directory is nil", func() error { _, err := claim.New(api, nil, claim.Options{}); return err }},
		{"New Directory typed", "Directory is nil", func() error { _, err := claim.New(api, nilRing, claim.Options{}); return err }},
		{"New plane typed", "plane is a nil", func() error { _, err := claim.New(nilConn, region.Fixed(), claim.Options{}); return err }},
		{"zero Arbiter", "not made by New", func() error { return new(claim.Arbiter).Start(t.Context()) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
