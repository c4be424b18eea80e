// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// withExtras is the status of a profile that adds an argument and variables.
func withExtras(args, env string) string {
	return "{accessProviders: [{name: fleet, cluster: {server: 'https://eu', extensions: [" +
		"{name: " + argsExtension + ", extension: " + args + "}, {name: " + envExtension + ", extension: " + env + "}]}}]}"
}

// The arguments and variables of a profile appear in its own credentials only, however often they are made, and never
// in the operator's configuration.
func TestProfilesShareNothing(t *testing.T) {
	plugin := fleet()
	plugin.Exec.Args = make([]string, 1, 8) // an append would write into the spare capacity
	plugin.Exec.Args[0] = "login"
	plugin.Exec.Env = make([]clientcmdv1.ExecEnvVar, 1, 8)
	plugin.Exec.Env[0] = clientcmdv1.ExecEnvVar{Name: "HOME", Value: "/tmp"}
	plugin.Args, plugin.Env = true, []string{"ROLE", "HOME"}
	given := plugin
	opts := optionsOf(t, Options{Plugins: []Plugin{plugin}})
	given.Exec.Args[0], given.Exec.Env[0].Value, given.Env[0] = "changed", "changed", "PATH"

	type extras struct {
		args []string
		env  []clientcmdapi.ExecEnvVar
	}
	home := clientcmdapi.ExecEnvVar{Name: "HOME", Value: "/tmp"}
	for range 2 {
		for _, tt := range []struct {
			status string
			want   extras
		}{
			{withExtras("[eu]", "{ROLE: eu, HOME: /root, LD_PRELOAD: x}"), extras{[]string{"login", "eu"}, []clientcmdapi.ExecEnvVar{home, {Name: "ROLE", Value: "eu"}}}},
			{access("https://us"), extras{[]string{"login"}, []clientcmdapi.ExecEnvVar{home}}},
			{withExtras("[asia, x]", "{}"), extras{[]string{"login", "asia", "x"}, []clientcmdapi.ExecEnvVar{home}}},
		} {
			peer, _, err := opts.peerOf(profile(t, "eu", tt.status))
			require.NoError(t, err)
			exec := configOf(t, peer.Credentials).ExecProvider
			require.Equal(t, tt.want, extras{exec.Args, exec.Env})
		}
	}
	require.Equal(t, []string{"login"}, opts.Plugins[0].Exec.Args)
}

// Without the operator's permission a profile adds neither arguments nor variables.
func TestExtrasAreIgnored(t *testing.T) {
	peer, _, err := optionsOf(t, Options{}).peerOf(profile(t, "eu", withExtras("[eu]", "{ROLE: eu}")))
	require.NoError(t, err)
	exec := configOf(t, peer.Credentials).ExecProvider
	require.Empty(t, exec.Args)
	require.Empty(t, exec.Env)
}

// Credentials for the same profile are equal, and those for another argument, variable or setting are not.
func TestCredentialsCompare(t *testing.T) {
	plugin := fleet()
	plugin.Args, plugin.Env = true, []string{"ROLE"}
	opts := optionsOf(t, Options{Plugins: []Plugin{plugin}})
	seen := map[string]bool{}
	for _, status := range []string{withExtras("[eu]", "{ROLE: eu}"), withExtras("[us]", "{ROLE: eu}"), withExtras("[eu]", "{ROLE: us}"), access("https://eu")} {
		first, _, err := opts.peerOf(profile(t, "eu", status))
		require.NoError(t, err)
		second, _, err := opts.peerOf(profile(t, "eu", status))
		require.NoError(t, err)
		require.Equal(t, first.Credentials.String(), second.Credentials.String())
		require.False(t, seen[first.Credentials.String()])
		seen[first.Credentials.String()] = true
	}
}
