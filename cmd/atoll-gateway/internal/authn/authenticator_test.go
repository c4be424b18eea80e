// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// Names that Kubernetes reserves reach no region unless a mapping names them.
func TestMappings(t *testing.T) {
	a := &Authenticator{mappings: newMappings(&config.Authentication{
		Mappings: []config.Mapping{
			{User: "system:serviceaccount:ci:deployer", As: "hub:deployer"},
			{Group: "system:serviceaccounts:ci", As: "ci"},
			{Group: "admins", As: "system:monitoring"},
			{User: "root", As: "system:node:a"},
		},
		ExtraKeys: []string{"example.com/tenant"},
	})}
	for _, tt := range []struct {
		user    user.DefaultInfo
		want    router.User
		refused bool
	}{
		{user: user.DefaultInfo{Name: "alice", UID: "1", Groups: []string{"dev", "system:authenticated"}}, want: router.User{Name: "alice", Groups: []string{"dev"}}},
		{user: user.DefaultInfo{Name: "mallory", Groups: []string{"system:masters"}}, want: router.User{Name: "mallory"}},
		{user: user.DefaultInfo{Name: "mallory", Groups: []string{"system:monitoring"}}, want: router.User{Name: "mallory"}},
		{user: user.DefaultInfo{Name: "alice", Groups: []string{"admins", "", "ci", "system:serviceaccounts:ci"}}, want: router.User{Name: "alice", Groups: []string{"system:monitoring", "ci"}}},
		{user: user.DefaultInfo{Name: "system:serviceaccount:ci:deployer", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ci"}}, want: router.User{Name: "hub:deployer", Groups: []string{"ci"}}},
		{user: user.DefaultInfo{Name: "root"}, want: router.User{Name: "system:node:a"}},
		{user: user.DefaultInfo{Name: "bob", Extra: map[string][]string{"example.com/tenant": {"acme"}, "authentication.kubernetes.io/pod-name": {"p"}}}, want: router.User{Name: "bob", Extra: map[string][]string{"example.com/tenant": {"acme"}}}},
		{user: user.DefaultInfo{Name: "system:serviceaccount:ci:other"}, refused: true},
		{user: user.DefaultInfo{Name: "system:admin", Groups: []string{"system:masters"}}, refused: true},
		{user: user.DefaultInfo{Name: "system:anonymous"}, refused: true},
		{user: user.DefaultInfo{}, refused: true},
	} {
		got, err := a.mappings.acting(&tt.user)
		require.Equal(t, tt.refused, err != nil, "%v: %v", tt.user, err)
		if tt.refused {
			require.ErrorIs(t, err, router.ErrIdentity)
			continue
		}
		require.Equal(t, tt.want, got)
		require.True(t, a.Users(got.Name), "the router admits what a mapping names")
		for _, group := range got.Groups {
			require.True(t, a.Groups(group))
		}
	}
	a.mappings.uids = true
	got, err := a.mappings.acting(&user.DefaultInfo{Name: "alice", UID: "1"})
	require.NoError(t, err)
	require.Equal(t, router.User{Name: "alice", UID: "1"}, got)
	require.False(t, a.Users("system:serviceaccount:ci:deployer"))
	require.False(t, a.Users("system:monitoring"))
	require.False(t, a.Groups("system:masters"))
}

func TestTokenFile(t *testing.T) {
	path := file(t, "tokens.csv", "t1,alice,1,\"dev,ops\"\nt2,bob,2\n")
	a := newAuthenticator(t, &config.Authentication{TokenFile: &config.TokenFile{File: path}, PassUIDs: true})
	id, caller, err := a.Authenticate(request(t, "t1"))
	require.NoError(t, err)
	require.Equal(t, router.Impersonate(router.User{Name: "alice", UID: "1", Groups: []string{"dev", "ops"}}).Fingerprint(), id.Fingerprint())
	require.Equal(t, "alice", caller.User.GetName())
	for _, token := range []string{"", "t", "t11", "t3", "T1"} {
		_, caller, err := a.Authenticate(request(t, token))
		require.ErrorIs(t, err, errNobody)
		require.NotErrorIs(t, err, region.ErrUnavailable)
		require.Nil(t, caller)
	}

	// A token that is removed is refused.
	require.NoError(t, os.WriteFile(path, []byte("t2,bob,2\n"), 0o600))
	require.Eventually(t, func() bool { _, _, err := a.Authenticate(request(t, "t1")); return err != nil }, time.Minute, time.Millisecond)

	for _, wrong := range []string{"", "t1,alice\n", ",alice,1\n", "t1,,1\n", "t1,alice,1\nt1,bob,2\n", "\"\n"} {
		_, err := New(t.Context(), &config.Authentication{TokenFile: &config.TokenFile{File: file(t, "x", wrong)}}, nil)
		require.ErrorContains(t, err, "authentication.tokenFile.file: tokens: ", "%q", wrong)
		require.NotContains(t, err.Error(), "t1", "errors quote no token")
	}
}

func TestClientCertificates(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	path := file(t, "ca.crt", first.pem())
	a := newAuthenticator(t, &config.Authentication{ClientCertificates: &config.ClientCertificates{CAFile: path}})
	ask := func(state *tls.ConnectionState) (*Caller, error) {
		r := request(t, "")
		r.TLS = state
		_, caller, err := a.Authenticate(r)
		return caller, err
	}
	later := time.Now().Add(time.Hour)
	caller, err := ask(first.present(t, "alice", []string{"dev", "system:masters"}, x509.ExtKeyUsageClientAuth, later))
	require.NoError(t, err)
	require.Equal(t, router.User{Name: "alice", Groups: []string{"dev"}}, caller.Acting)
	for name, state := range map[string]*tls.ConnectionState{
		"another authority": second.present(t, "alice", nil, x509.ExtKeyUsageClientAuth, later),
		"another usage":     first.present(t, "alice", nil, x509.ExtKeyUsageServerAuth, later),
		"it has expired":    first.present(t, "alice", nil, x509.ExtKeyUsageClientAuth, time.Now().Add(-time.Minute)),
		"no name":           first.present(t, "", nil, x509.ExtKeyUsageClientAuth, later),
		"no certificate":    {},
		"no TLS":            nil,
	} {
		_, err := ask(state)
		require.Error(t, err, name)
	}

	// The authority is replaced while the gateway runs.
	rotated := second.present(t, "alice", nil, x509.ExtKeyUsageClientAuth, later)
	require.NoError(t, os.WriteFile(path, []byte(second.pem()), 0o600))
	require.Eventually(t, func() bool { _, err := ask(rotated); return err == nil }, time.Minute, time.Millisecond)
	_, err = ask(first.present(t, "alice", nil, x509.ExtKeyUsageClientAuth, later))
	require.Error(t, err)

	_, err = New(t.Context(), &config.Authentication{ClientCertificates: &config.ClientCertificates{CAFile: file(t, "ca.crt", "none")}}, nil)
	require.ErrorContains(t, err, "authentication.clientCertificates.caFile: authorities of client certificates: the file holds no certificate")
}

func TestPassThrough(t *testing.T) {
	ca := newAuthority(t)
	a := newAuthenticator(t, &config.Authentication{
		PassThrough: &config.PassThrough{}, ClientCertificates: &config.ClientCertificates{CAFile: file(t, "ca.crt", ca.pem())},
	})
	id, caller, err := a.Authenticate(request(t, "a-token"))
	require.NoError(t, err)
	require.Equal(t, router.Caller("a-token").Fingerprint(), id.Fingerprint())
	require.Nil(t, caller.User)
	_, _, err = a.Authenticate(request(t, ""))
	require.ErrorIs(t, err, errNobody)
	r := request(t, "a-token")
	r.TLS = ca.present(t, "alice", nil, x509.ExtKeyUsageClientAuth, time.Now().Add(time.Hour))
	id, _, err = a.Authenticate(r)
	require.NoError(t, err)
	require.Equal(t, "user \"alice\"", id.String(), "a certificate takes precedence over a token, as in an API server")
	require.Equal(t, "Bearer a-token", r.Header.Get("Authorization"), "the request is unchanged")
}
