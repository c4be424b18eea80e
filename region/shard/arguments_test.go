// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/shard"
)

// If an argument is missing, the function does not panic, and its error names the argument.
func TestArguments(t *testing.T) {
	api, err := region.APIFor(&rest.Config{Host: "https://plane.invalid"})
	require.NoError(t, err)
	var nilConn *region.Conn
	opts := shard.Options{Identity: "a"}
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New plane", "plane is nil", func() error { _, err := shard.New(nil, "default", "group", opts); return err }},
		{"New plane typed", "plane is nil", func() error { _, err := shard.New(nilConn, "default", "group", opts); return err }},
		{"New namespace", "namespace", func() error { _, err := shard.New(api, "", "group", opts); return err }},
		{"New group", "group", func() error { _, err := shard.New(api, "default", "", opts); return err }},
		{"zero Members", "not made by New", func() error { return new(shard.Members).Start(t.Context()) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
