// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// Authenticator authenticates requests. It is safe for concurrent use.
type Authenticator struct {
	request  authenticator.Request // nil: tokens are passed through without another way
	pass     bool
	mappings mappings
	running  []func(context.Context) error
	ready    []func() error
}

// New makes the Authenticator of a configuration. ring has the peer of a TokenReview, and may be nil otherwise. Contexts of
// the issuers' background requests end with ctx. Errors name the field of the configuration.
func New(ctx context.Context, c *config.Authentication, ring *region.Ring) (*Authenticator, error) {
	a := &Authenticator{pass: c.PassThrough != nil, mappings: newMappings(c)}
	var requests []authenticator.Request
	if c.ClientCertificates != nil {
		way, err := a.clientCertificates(c.ClientCertificates.CAFile)
		if err != nil {
			return nil, fmt.Errorf("authentication.clientCertificates.caFile: %w", err)
		}
		requests = append(requests, way)
	}
	tokens, err := a.tokens(ctx, c, ring)
	if err != nil {
		return nil, err
	}
	if len(tokens) > 0 {
		requests = append(requests, bearertoken.New(tokenunion.New(tokens...)))
	}
	if len(requests) > 0 {
		a.request = union.New(requests...)
	}
	return a, nil
}

// tokens returns the ways to authenticate a bearer token, in the order in which they are tried.
func (a *Authenticator) tokens(ctx context.Context, c *config.Authentication, ring *region.Ring) ([]authenticator.Token, error) {
	var tokens []authenticator.Token
	if c.TokenFile != nil {
		way, err := a.tokenFile(c.TokenFile.File)
		if err != nil {
			return nil, fmt.Errorf("authentication.tokenFile.file: %w", err)
		}
		tokens = append(tokens, way)
	}
	issuers, err := c.Issuers()
	if err != nil {
		return nil, fmt.Errorf("authentication.jwt: %w", err)
	}
	for i := range issuers {
		way, err := a.issuer(ctx, &issuers[i])
		if err != nil {
			return nil, fmt.Errorf("authentication.jwt[%d]: %w", i, err)
		}
		tokens = append(tokens, way)
	}
	if c.TokenReview != nil {
		way, err := newReview(c.TokenReview, ring)
		if err != nil {
			return nil, fmt.Errorf("authentication.tokenReview: %w", err)
		}
		tokens = append(tokens, way)
	}
	return tokens, nil
}

// Start keeps files current until ctx ends. Call it once.
func (a *Authenticator) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range a.running {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// Ready returns an error while a way of the configuration cannot be used yet.
func (a *Authenticator) Ready() error {
	var faults []error
	for _, ready := range a.ready {
		faults = append(faults, ready())
	}
	return errors.Join(faults...)
}

// Caller is who makes a request.
type Caller struct {
	User   user.Info // as authenticated; nil if the caller's token is passed through
	Acting router.User
}

var errNobody = errors.New("no way of authentication knows the caller")

// Authenticate returns the identity of the caller of r for the regions, and who it is.
func (a *Authenticator) Authenticate(r *http.Request) (router.Identity, *Caller, error) {
	if a.request != nil {
		r := r.Clone(r.Context()) // the way that knows a token removes its header
		answer, ok, err := a.request.AuthenticateRequest(r)
		if ok {
			acting, err := a.mappings.acting(answer.User)
			if err != nil {
				return router.Identity{}, &Caller{User: answer.User}, err
			}
			return router.Impersonate(acting), &Caller{User: answer.User, Acting: acting}, nil
		}
		if !a.pass {
			return router.Identity{}, nil, errors.Join(errNobody, err)
		}
	}
	token := bearer(r)
	if token == "" {
		return router.Identity{}, nil, errNobody
	}
	return router.Caller(token), &Caller{}, nil
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
