// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
)

// Constructors name a missing argument in their error. Methods of a zero value name the constructor.
func TestArguments(t *testing.T) {
	api, err := region.APIFor(&rest.Config{Host: "https://plane.invalid"})
	require.NoError(t, err)
	var nilConn *region.Conn
	opts := syncer.Options{Target: "a"}
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New up", "upstream API is nil", func() error { _, err := syncer.New(nil, api, opts); return err }},
		{"New up typed", "upstream API is nil", func() error { _, err := syncer.New(nilConn, api, opts); return err }},
		{"New down", "downstream API is nil", func() error { _, err := syncer.New(api, nil, opts); return err }},
		{"New down typed", "downstream API is nil", func() error { _, err := syncer.New(api, nilConn, opts); return err }},
		{"New Target", "Target", func() error { _, err := syncer.New(api, api, syncer.Options{}); return err }},
		{"New Transform", "Transform[0] is nil", func() error {
			_, err := syncer.New(api, api, syncer.Options{Target: "a", Transform: []syncer.Transformer{nil}})
			return err
		}},
		{"NewAgent up", "upstream API is nil", func() error { _, err := syncer.NewAgent(nil, api, opts); return err }},
		{"NewAgent up typed", "upstream API is nil", func() error { _, err := syncer.NewAgent(nilConn, api, opts); return err }},
		{"NewAgent down", "downstream API is nil", func() error { _, err := syncer.NewAgent(api, nil, opts); return err }},
		{"NewAgent Target", "Target", func() error { _, err := syncer.NewAgent(api, api, syncer.Options{}); return err }},
		{"NewTargets", "upstream API is nil", func() error { _, err := syncer.NewTargets(nil, syncer.TargetsOptions{}); return err }},
		{"NewTargets typed", "upstream API is nil", func() error { _, err := syncer.NewTargets(nilConn, syncer.TargetsOptions{}); return err }},
		{"Manifests", "Target", func() error { _, err := syncer.Manifests(syncer.Install{}); return err }},
		{"ParsePower", "no permit", func() error { _, err := syncer.ParsePower(""); return err }},
		{"zero Syncer Start", "not made by New", func() error { return new(syncer.Syncer).Start(t.Context()) }},
		{"zero Syncer Detach", "not made by New", func() error { return new(syncer.Syncer).Detach(t.Context()) }},
		{"zero Syncer Diff", "not made by New", func() error {
			for _, err := range new(syncer.Syncer).Diff(t.Context()) {
				return err
			}
			return nil
		}},
		{"zero Agent", "not made by NewAgent", func() error { return new(syncer.Agent).Start(t.Context()) }},
		{"zero Targets", "not made by NewTargets", func() error { return new(syncer.Targets).Start(t.Context()) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
