// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

// Real API servers pass each check of "atollctl doctor" that does not depend on the terms of their
// certificates, also with the least rights. Each cause that makes a peer unusable shows up.
func (c *causes) doctor(t *testing.T) {
	for _, shell := range []*ctltest.Shell{c.ring.Administrator(), c.ring.Shell("doctor")} {
		r := shell.End(t, "doctor")
		require.Equal(t, ctltest.Done, r.Code, "%s", r)
		for _, check := range []string{"Reachable", "Identity", "Rights", "Types", "Version", "Clock", "PeerSet"} {
			for _, p := range c.ring.Planes {
				require.Regexp(t, `(?m)^`+p.Name()+` +`+check+` +OK `, r.Output)
			}
		}
		require.Regexp(t, `Expiry +\w+ +certificate of the API server: `, r.Output)
	}
	require.Contains(t, c.ring.Administrator().End(t, "doctor").Output, "have the schemas of this release")

	stranger, err := c.away.KubeconfigFor("stranger")
	require.NoError(t, err)
	powerless, err := plane.ConfigOf(stranger)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		change func(*api.Cluster, *api.AuthInfo)
		code   int
		row    string
	}{
		"dns": {func(c *api.Cluster, _ *api.AuthInfo) { c.Server = "https://peer.invalid:6443" }, ctltest.Doubt, `Reachable +Failed +DNS lookup failed: `},
		"tls": {func(cluster *api.Cluster, _ *api.AuthInfo) {
			cluster.CertificateAuthorityData = c.target.Config().CAData
		}, ctltest.Doubt, `Reachable +Failed .*certificate signed by unknown authority.* correct the certificate authority in the kubeconfig`},
		"credentials": {func(_ *api.Cluster, user *api.AuthInfo) { user.Token = "wrong" }, ctltest.Input, `Reachable +Failed +credentials rejected: .* renew the credentials`},
		"rights": {func(_ *api.Cluster, user *api.AuthInfo) {
			*user = api.AuthInfo{ClientCertificateData: powerless.CertData, ClientKeyData: powerless.KeyData}
		}, ctltest.Input, `Rights +Failed +the user lacks create, delete, get, .* of serviceclusters.kubecarrier.io; `},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.ring.ShellAs(t, name, c.away.Name(), tc.change).With("--timeout", "20s").End(t, "peers", "--check")
			require.Equal(t, tc.code, r.Code, "%s", r)
			require.Regexp(t, `(?m)^`+c.away.Name()+` +`+tc.row, r.Output)
		})
	}
}
