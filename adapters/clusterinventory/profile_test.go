// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// configOf returns the configuration in credentials.
func configOf(t testing.TB, c region.Credentials) *rest.Config {
	t.Helper()
	conn, err := region.NewConn(region.Peer{Name: "eu", Credentials: c}, region.ConnOptions{})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	config, err := conn.StreamConfig()
	require.NoError(t, err)
	return config
}

// Credentials come from both fields of a profile; the newer field is preferred, and the first plugin that the operator
// configured.
func TestCredentialFields(t *testing.T) {
	other := fleet()
	other.Name, other.Exec.Command = "other", "/opt/other"
	entry := func(name, host string) string {
		return "{name: " + name + ", cluster: {server: 'https://" + host + "'}}"
	}
	for _, tt := range []struct{ name, status, host, command string }{
		{"accessProviders", "{accessProviders: [" + entry("fleet", "new") + "]}", "https://new", "/opt/login"},
		{"credentialProviders", "{credentialProviders: [" + entry("fleet", "old") + "]}", "https://old", "/opt/login"},
		{"both", "{accessProviders: [" + entry("fleet", "new") + "], credentialProviders: [" + entry("fleet", "old") + "]}", "https://new", "/opt/login"},
		{"two providers", "{accessProviders: [" + entry("other", "other") + "], credentialProviders: [" + entry("fleet", "old") + "]}", "https://old", "/opt/login"},
		{"a later plugin", "{accessProviders: [" + entry("unknown", "unknown") + "," + entry("other", "other") + "]}", "https://other", "/opt/other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			peer, _, err := optionsOf(t, Options{Plugins: []Plugin{fleet(), other}}).peerOf(profile(t, "eu", tt.status))
			require.NoError(t, err)
			config := configOf(t, peer.Credentials)
			require.Equal(t, tt.host, config.Host)
			require.Equal(t, tt.command, config.ExecProvider.Command)
			require.Equal(t, map[string]string{"team": "eu"}, peer.Labels)
		})
	}
}

// The server's CA and name, and the settings for the plugin, come from the profile's cluster entry.
func TestClusterEntry(t *testing.T) {
	s := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(s.Close)
	kubeconfig, err := s.Listen(t.Context())
	require.NoError(t, err)
	var k clientcmdv1.Config
	require.NoError(t, yaml.Unmarshal(kubeconfig, &k))
	ca := k.Clusters[0].Cluster.CertificateAuthorityData
	plugin := fleet()
	plugin.Exec.ProvideClusterInfo = true
	peer, _, err := optionsOf(t, Options{Plugins: []Plugin{plugin}}).peerOf(profile(t, "eu", "{accessProviders: [{name: fleet, cluster: {"+
		"server: 'https://eu:6443', tls-server-name: kubernetes.default, certificate-authority-data: "+base64.StdEncoding.EncodeToString(ca)+
		", extensions: [{name: client.authentication.k8s.io/exec, extension: {clusterName: eu}}]}}]}"))
	require.NoError(t, err)
	config := configOf(t, peer.Credentials)
	require.Equal(t, ca, config.CAData)
	require.Equal(t, "kubernetes.default", config.ServerName)
	require.Equal(t, &runtime.Unknown{Raw: []byte(`{"clusterName":"eu"}`), ContentType: runtime.ContentTypeJSON}, config.ExecProvider.Config)
	require.Equal(t, clientcmdapi.NeverExecInteractiveMode, config.ExecProvider.InteractiveMode)
}

// Each way to select the region of a peer.
func TestRegions(t *testing.T) {
	for _, tt := range []struct {
		name, properties string
		opts             Options
		want             []region.Key
		field            string // of the error
	}{
		{"none", "[]", Options{}, nil, ""},
		{"list", "[{name: regions.atoll.dev, value: 'b.loodse,a.loodse'}, {name: 2.regions.atoll.dev, value: c.loodse}, {name: 4.regions.atoll.dev, value: x.loodse}]",
			Options{}, []region.Key{{Provider: "loodse", Name: "a"}, {Provider: "loodse", Name: "b"}, {Provider: "loodse", Name: "c"}}, ""},
		{"list twice", "[{name: regions.atoll.dev, value: 'a.loodse,a.loodse'}]", Options{}, []region.Key{{Provider: "loodse", Name: "a"}}, ""},
		{"no list", "[{name: regions.atoll.dev, value: A}]", Options{}, nil, "status.properties[regions.atoll.dev]"},
		{"property and value", "[{name: location, value: eu-west-1}]", Options{Provider: Field{Value: "loodse"}, Region: Field{Property: "location"}},
			[]region.Key{{Provider: "loodse", Name: "eu-west-1"}}, ""},
		{"label", "[]", Options{Provider: Field{Label: "team"}, Region: Field{Value: "west"}}, []region.Key{{Provider: "eu", Name: "west"}}, ""},
		{"no property", "[]", Options{Provider: Field{Value: "loodse"}, Region: Field{Property: "location"}}, nil, "status.properties[location]"},
		{"no label", "[]", Options{Provider: Field{Label: "cloud"}, Region: Field{Value: "west"}}, nil, "metadata.labels[cloud]"},
		{"no name", "[{name: location, value: EU}]", Options{Provider: Field{Value: "loodse"}, Region: Field{Property: "location"}}, nil, "status.properties or metadata.labels"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			peer, _, err := optionsOf(t, tt.opts).peerOf(profile(t, "eu", access("https://eu", "properties: "+tt.properties)))
			if tt.field != "" {
				refused, ok := errors.AsType[*region.FieldError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, tt.field, refused.Field)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, peer.Regions)
		})
	}
}

// A profile is untrusted input: an error names the field.
func TestRefusedProfiles(t *testing.T) {
	for _, tt := range []struct{ name, status, field string }{
		{"no provider", "{}", "status.accessProviders"},
		{"other provider", "{accessProviders: [{name: other, cluster: {server: 'https://eu'}}]}", "status.accessProviders"},
		{"no cluster", "{accessProviders: [{name: fleet}]}", "status.accessProviders[fleet].cluster.server"},
		{"plain server", "{credentialProviders: [{name: fleet, cluster: {server: 'http://eu'}}]}", "status.credentialProviders[fleet].cluster.server"},
		{"file", "{accessProviders: [{name: fleet, cluster: {server: 'https://eu', certificate-authority: /etc/ca}}]}", "status.accessProviders[fleet].cluster.certificate-authority"},
		{"any server", "{accessProviders: [{name: fleet, cluster: {server: 'https://eu', insecure-skip-tls-verify: true}}]}", "status.accessProviders[fleet].cluster.insecure-skip-tls-verify"},
		{"proxy", "{accessProviders: [{name: fleet, cluster: {server: 'https://eu', proxy-url: 'http://proxy'}}]}", "status.accessProviders[fleet].cluster.proxy-url"},
		{"arguments", "{accessProviders: [{name: fleet, cluster: {server: 'https://eu', extensions: [{name: " + argsExtension + ", extension: {a: b}}]}}]}",
			"status.accessProviders[fleet].cluster.extensions[" + argsExtension + "]"},
		{"arguments twice", "{accessProviders: [{name: fleet, cluster: {server: 'https://eu', extensions: [{name: " + argsExtension + ", extension: [a]}, {name: " + argsExtension + ", extension: [b]}]}}]}",
			"status.accessProviders[fleet].cluster.extensions[" + argsExtension + "]"},
		{"argument with NUL", "{accessProviders: [{name: fleet, cluster: {server: 'https://eu', extensions: [{name: " + argsExtension + ", extension: [\"\\0\"]}]}}]}",
			"status.accessProviders[fleet].cluster.extensions[" + argsExtension + "]"},
		{"variable with NUL", "{accessProviders: [{name: fleet, cluster: {server: 'https://eu', extensions: [{name: " + envExtension + ", extension: {ROLE: \"\\0\"}}]}}]}",
			"status.accessProviders[fleet].cluster.extensions[" + envExtension + "]"},
		{"variables", "{accessProviders: [{name: fleet, cluster: {server: 'https://eu', extensions: [{name: " + envExtension + ", extension: [a]}]}}]}",
			"status.accessProviders[fleet].cluster.extensions[" + envExtension + "]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plugin := fleet()
			plugin.Args, plugin.Env = true, []string{"ROLE"}
			_, _, err := optionsOf(t, Options{Plugins: []Plugin{plugin}}).peerOf(profile(t, "eu", tt.status))
			refused, ok := errors.AsType[*region.FieldError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, tt.field, refused.Field)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// Any content of a status either is refused, or gives credentials that run only the configured program, with only the
// allowed variables, for an https server.
func FuzzPeerOf(f *testing.F) {
	for _, status := range []string{
		"{}", access("https://eu"), access("https://eu", "properties: [{name: regions.atoll.dev, value: a.b}]"),
		"{accessProviders: [{name: fleet, cluster: {server: 'https://eu', extensions: [{name: " + argsExtension + ", extension: [a]}, {name: " + envExtension + ", extension: {ROLE: b, PATH: c}}]}}]}",
		"{credentialProviders: [{name: fleet, cluster: {server: 'https://eu', extensions: [{name: client.authentication.k8s.io/exec, extension: {exec: /bin/sh}}]}}]}",
	} {
		f.Add(status)
	}
	f.Fuzz(func(t *testing.T, status string) {
		obj := profile(t, "eu", "{}")
		var content any
		if yaml.Unmarshal([]byte(status), &content) != nil {
			return
		}
		obj.Object["status"] = content
		plugin := fleet()
		plugin.Args, plugin.Env = true, []string{"ROLE"}
		peer, _, err := optionsOf(t, Options{Plugins: []Plugin{plugin}}).peerOf(obj)
		if err != nil {
			return
		}
		_, err = region.NewSnapshot(peer)
		require.NoError(t, err)
		config := configOf(t, peer.Credentials)
		require.Regexp(t, "^https://", config.Host)
		require.Equal(t, "/opt/login", config.ExecProvider.Command)
		require.Empty(t, config.CAFile+config.BearerToken+config.BearerTokenFile+config.CertFile+config.KeyFile)
		require.False(t, config.Insecure)
		for _, v := range config.ExecProvider.Env {
			require.Equal(t, "ROLE", v.Name)
		}
	})
}
