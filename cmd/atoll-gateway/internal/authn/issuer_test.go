// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// openID is an OpenID Connect issuer.
type openID struct {
	url  string
	key  *rsa.PrivateKey
	id   string
	away atomic.Bool
}

func (o *openID) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if o.away.Load() {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": o.url, "jwks_uri": o.url + "/keys"})
	case "/keys":
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": o.id,
			"n": encode(o.key.N.Bytes()), "e": encode(big.NewInt(int64(o.key.E)).Bytes()),
		}}})
	}
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// sign returns a token with the claims, by the key with an ID.
func (o *openID) sign(t *testing.T, id string, claims map[string]any) string {
	t.Helper()
	head, err := json.Marshal(map[string]any{"alg": "RS256", "kid": id})
	require.NoError(t, err)
	body, err := json.Marshal(claims)
	require.NoError(t, err)
	signed := encode(head) + "." + encode(body)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, o.key, crypto.SHA256, sum[:])
	require.NoError(t, err)
	return signed + "." + encode(signature)
}

func newOpenID(t *testing.T) (*openID, *config.Authentication) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	o := &openID{key: key, id: "first"}
	server, ca := serve(t, o)
	o.url = server.URL
	empty := ""
	return o, &config.Authentication{JWT: []apiserverv1.JWTAuthenticator{{
		Issuer: apiserverv1.Issuer{URL: o.url, Audiences: []string{"gateway"}, CertificateAuthority: ca},
		ClaimMappings: apiserverv1.ClaimMappings{
			Username: apiserverv1.PrefixedClaimOrExpression{Claim: "sub", Prefix: &empty},
			Groups:   apiserverv1.PrefixedClaimOrExpression{Claim: "groups", Prefix: &empty},
		},
	}}}
}

func TestIssuer(t *testing.T) {
	o, c := newOpenID(t)
	a := newAuthenticator(t, c)
	claims := func(more map[string]any) map[string]any {
		all := map[string]any{"iss": o.url, "aud": "gateway", "sub": "alice", "groups": []string{"dev", "system:masters"}, "exp": time.Now().Add(time.Hour).Unix()}
		for key, value := range more {
			all[key] = value
		}
		return all
	}
	require.Eventually(t, func() bool { return a.Ready() == nil }, time.Minute, time.Millisecond)
	_, caller, err := a.Authenticate(request(t, o.sign(t, "first", claims(nil))))
	require.NoError(t, err)
	require.Equal(t, router.User{Name: "alice", Groups: []string{"dev"}}, caller.Acting)

	another, _ := newOpenID(t)
	for name, token := range map[string]string{
		"another audience": o.sign(t, "first", claims(map[string]any{"aud": "another"})),
		"it has expired":   o.sign(t, "first", claims(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})),
		"another issuer":   o.sign(t, "first", claims(map[string]any{"iss": another.url})),
		"another key":      another.sign(t, "first", claims(nil)),
		"no user":          o.sign(t, "first", claims(map[string]any{"sub": ""})),
		"a reserved user":  o.sign(t, "first", claims(map[string]any{"sub": "system:admin"})),
		"no token":         "a.b.c",
	} {
		_, _, err := a.Authenticate(request(t, token))
		require.Error(t, err, name)
		require.NotErrorIs(t, err, region.ErrUnavailable, name)
	}

	// A token of a key that is not known yet, while the issuer does not answer, may be right.
	o.away.Store(true)
	// go-oidc may join the fetch of a refused token above, which has just ended with the known keys.
	require.Eventually(t, func() bool {
		_, _, err = a.Authenticate(request(t, o.sign(t, "second", claims(nil))))
		require.Error(t, err)
		return errors.Is(err, region.ErrUnavailable)
	}, time.Minute, time.Millisecond)
	_, _, err = a.Authenticate(request(t, o.sign(t, "first", claims(nil))))
	require.NoError(t, err, "known keys stay in use")
}

// An issuer that does not answer when the gateway starts makes it unready, and its tokens are not refused.
func TestIssuerIsAwayAtTheStart(t *testing.T) {
	o, c := newOpenID(t)
	o.away.Store(true)
	a := newAuthenticator(t, c)
	require.ErrorContains(t, a.Ready(), o.url)
	_, _, err := a.Authenticate(request(t, o.sign(t, "first", map[string]any{"iss": o.url, "aud": "gateway", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()})))
	require.ErrorIs(t, err, region.ErrUnavailable)
}
