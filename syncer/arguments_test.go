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

// If an argument is missing, New, Detach and ParsePower return an error that names it. The methods of a zero Syncer
// return an error that names New.
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
		{"Detach up", "upstream API is nil", func() error { return syncer.Detach(t.Context(), nilConn, opts) }},
		{"Detach Target", "Target", func() error { return syncer.Detach(t.Context(), api, syncer.Options{}) }},
		{"ParsePower", "no permit", func() error { _, err := syncer.ParsePower(""); return err }},
		{"zero Syncer Start", "not made by New", func() error { return new(syncer.Syncer).Start(t.Context()) }},
		{"zero Syncer Detach", "not made by New", func() error { return new(syncer.Syncer).Detach(t.Context()) }},
		{"zero Syncer Diff", "not made by New", func() error {
			for _, err := range new(syncer.Syncer).Diff(t.Context()) {
				return err
			}
			return nil
		}},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
