// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"github.com/atoll-dev/atoll/region"
)

// issuer authenticates by tokens of an OpenID Connect issuer, whose keys are fetched in the background until ctx ends.
func (a *Authenticator) issuer(ctx context.Context, c *apiserver.JWTAuthenticator) (authenticator.Token, error) {
	opts := oidc.Options{JWTAuthenticator: *c, SupportedSigningAlgs: oidc.AllValidSigningAlgorithms()}
	if authority := c.Issuer.CertificateAuthority; authority != "" {
		provider, err := dynamiccertificates.NewStaticCAContent("issuer", []byte(authority))
		if err != nil {
			return nil, err
		}
		opts.CAContentProvider = provider
	}
	issuer, err := oidc.New(ctx, opts)
	if err != nil {
		return nil, err
	}
	a.ready = append(a.ready, func() error {
		if err := issuer.HealthCheck(); err != nil {
			return fmt.Errorf("issuer %s: its keys could not be fetched yet: %w", c.Issuer.URL, err)
		}
		return nil
	})
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		answer, ok, err := issuer.AuthenticateToken(ctx, token)
		if err != nil && (issuer.HealthCheck() != nil || strings.Contains(err.Error(), "fetching keys")) {
			err = fmt.Errorf("issuer %s does not answer: %w: %w", c.Issuer.URL, region.ErrUnavailable, err)
		}
		return answer, ok, err
	}), nil
}
