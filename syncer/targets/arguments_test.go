// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// If an argument is missing, NewAgent, New and Manifests return an error that names it. Start of a zero Agent or
// Controller returns an error that names its constructor.
func TestArguments(t *testing.T) {
	api, err := region.APIFor(&rest.Config{Host: "https://plane.invalid"})
	require.NoError(t, err)
	var nilConn *region.Conn
	opts := syncer.Options{Target: "a"}
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"NewAgent up", "upstream API is nil", func() error { _, err := targets.NewAgent(nil, api, opts); return err }},
		{"NewAgent up typed", "upstream API is nil", func() error { _, err := targets.NewAgent(nilConn, api, opts); return err }},
		{"NewAgent down", "downstream API is nil", func() error { _, err := targets.NewAgent(api, nil, opts); return err }},
		{"NewAgent Target", "Target", func() error { _, err := targets.NewAgent(api, api, syncer.Options{}); return err }},
		{"New", "upstream API is nil", func() error { _, err := targets.New(nil, targets.Options{}); return err }},
		{"New typed", "upstream API is nil", func() error { _, err := targets.New(nilConn, targets.Options{}); return err }},
		{"Manifests", "Target", func() error { _, err := targets.Manifests(targets.Install{}); return err }},
		{"zero Agent", "not made by NewAgent", func() error { return new(targets.Agent).Start(t.Context()) }},
		{"zero Controller", "not made by New", func() error { return new(targets.Controller).Start(t.Context()) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
