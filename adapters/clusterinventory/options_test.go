// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// If an argument or option is missing or wrong, the error names it.
func TestArguments(t *testing.T) {
	hub := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(hub.Close)
	api := apiOf(t, hub)
	var nilConn *region.Conn
	var nilRing *region.Ring
	source := func(change func(*Options)) func() error {
		return func() error {
			opts := Options{Namespace: namespace, Plugins: []Plugin{fleet()}}
			change(&opts)
			_, err := New(api, opts)
			return err
		}
	}
	publisher := func(hub region.API, d region.Directory, opts PublisherOptions) func() error {
		return func() error {
			_, err := NewPublisher(hub, d, opts)
			return err
		}
	}
	made, err := New(api, Options{Namespace: namespace, Plugins: []Plugin{fleet()}})
	require.NoError(t, err)
	for _, tt := range []struct {
		call, want string
		try        func() error
	}{
		{"hub", "hub is nil", func() error { _, err := New(nilConn, Options{}); return err }},
		{"namespace", "Options.Namespace is empty", source(func(o *Options) { o.Namespace = "" })},
		{"selector", "Options.Selector", source(func(o *Options) { o.Selector = "=" })},
		{"plugins", "Options.Plugins is empty", source(func(o *Options) { o.Plugins = nil })},
		{"plugin name", "Options.Plugins[0]: the Name is empty", source(func(o *Options) { o.Plugins[0].Name = "" })},
		{"plugin twice", `Options.Plugins[1]: the Name "fleet" is given twice`, source(func(o *Options) { o.Plugins = []Plugin{fleet(), fleet()} })},
		{"plugin command", `Options.Plugins[0]: the Exec.Command is "login"`, source(func(o *Options) { o.Plugins[0].Exec.Command = "login" })},
		{"plugin version", "Options.Plugins[0]: users[0].user.exec.apiVersion", source(func(o *Options) { o.Plugins[0].Exec.APIVersion = "v1" })},
		{"trust", "Options.Trust has Exec or Env", source(func(o *Options) { o.Trust.Exec = []string{"/bin/sh"} })},
		{"provider", "Options.Provider has 0 of", source(func(o *Options) { o.Region = Field{Value: "a"} })},
		{"region", "Options.Region has 2 of", source(func(o *Options) { o.Provider, o.Region = Field{Value: "a"}, Field{Value: "a", Label: "b"} })},
		{"publish", "publish is nil", func() error { return made.Run(t.Context(), nil) }},
		{"zero Source", "not made by New", func() error { return new(Source).Run(t.Context(), func(*region.Snapshot) {}) }},
		{"publisher hub", "hub is nil", publisher(nil, region.Fixed(), PublisherOptions{})},
		{"publisher directory", "directory is nil", publisher(api, nilRing, PublisherOptions{})},
		{"publisher namespace", "PublisherOptions.Namespace is empty", publisher(api, region.Fixed(), PublisherOptions{})},
		{"publisher manager", "PublisherOptions.Manager is empty", publisher(api, region.Fixed(), PublisherOptions{Namespace: "a"})},
		{"publisher label", "PublisherOptions.Manager: ", publisher(api, region.Fixed(), PublisherOptions{Namespace: "a", Manager: "a b"})},
		{"zero Publisher", "not made by NewPublisher", func() error { return new(Publisher).Start(t.Context()) }},
	} {
		t.Run(tt.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tt.try(), tt.want) })
		})
	}
}

// The operator's Trust decides about the server, a proxy and an unverified server of a profile.
func TestTrust(t *testing.T) {
	entry := func(more string) string {
		return "{accessProviders: [{name: fleet, cluster: {server: 'https://eu'" + more + "}}]}"
	}
	no := func(*url.URL) error { return errors.New("not that one") }
	yes := func(*url.URL) error { return nil }
	for _, tt := range []struct {
		name, status string
		trust        region.Trust
		want         string // in the error; empty: accepted
	}{
		{"server", entry(""), region.Trust{Server: no}, "not that one"},
		{"proxy", entry(", proxy-url: 'http://proxy'"), region.Trust{Proxy: yes}, ""},
		{"other proxy", entry(", proxy-url: 'http://proxy'"), region.Trust{Proxy: no}, "not that one"},
		{"insecure", entry(", insecure-skip-tls-verify: true"), region.Trust{Insecure: true}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := optionsOf(t, Options{Trust: tt.trust}).peerOf(profile(t, "eu", tt.status))
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// If the hub is unreachable, each loop logs the error to the Logger in its options.
func TestLogger(t *testing.T) {
	api := logtest.Unreachable(t)
	t.Run("Source", func(t *testing.T) {
		lines := logtest.New()
		source, err := New(api, Options{Namespace: namespace, Plugins: []Plugin{fleet()}, Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, func(ctx context.Context) error { return source.Run(ctx, func(*region.Snapshot) {}) })
		lines.Await(t, "clusterinventory", "clusterprofiles", "connection refused")
		require.ErrorContains(t, source.Run(t.Context(), func(*region.Snapshot) {}), "Run was called twice")
	})
	t.Run("Publisher", func(t *testing.T) {
		lines := logtest.New()
		publisher, err := NewPublisher(api, region.Fixed(), PublisherOptions{Namespace: namespace, Manager: "atoll", Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, publisher.Start)
		lines.Await(t, "clusterinventory", "clusterprofiles", "connection refused")
		require.ErrorContains(t, publisher.Start(t.Context()), "Start was called twice")
	})
}
