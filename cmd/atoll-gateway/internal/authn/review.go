// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/region"
)

// review authenticates tokens by asking an API server.
type review struct {
	client    func() (authenticationclient.TokenReviewInterface, error)
	audiences authenticator.Audiences
	timeout   time.Duration
}

// newReview returns the authenticator of c, with its cache.
func newReview(c *config.TokenReview, ring *region.Ring) (authenticator.Token, error) {
	r := &review{audiences: c.Audiences, timeout: c.Timeout.Duration}
	if c.Peer != "" {
		r.client = func() (authenticationclient.TokenReviewInterface, error) {
			conn, err := ring.Conn(region.PeerName(c.Peer))
			if err != nil {
				return nil, err
			}
			return clientFor(conn.Config())
		}
	} else {
		config, err := clientcmd.BuildConfigFromFlags("", c.KubeconfigFile)
		if err != nil {
			return nil, fmt.Errorf("kubeconfigFile: %w", err)
		}
		config.QPS = -1
		client, err := clientFor(config)
		if err != nil {
			return nil, fmt.Errorf("kubeconfigFile: %w", err)
		}
		r.client = func() (authenticationclient.TokenReviewInterface, error) { return client, nil }
	}
	if c.CacheTTL.Duration == 0 {
		return r, nil
	}
	// The cache hashes tokens with a key of its own. Failures are not cached: a token that was just made is accepted.
	return cache.New(r, false, c.CacheTTL.Duration, 0), nil
}

func clientFor(config *rest.Config) (authenticationclient.TokenReviewInterface, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	client, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.TokenReviews(), nil
}

// AuthenticateToken returns the user of a token with one of the audiences. An error that wraps region.ErrUnavailable means
// that the API server did not review the token.
func (r *review) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	client, err := r.client()
	if err != nil {
		return nil, false, fmt.Errorf("review of a token: %w: %w", region.ErrUnavailable, err)
	}
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: r.audiences}}
	answer, err := client.Create(ctx, asked, metav1.CreateOptions{})
	if err != nil {
		return nil, false, fmt.Errorf("review of a token: %w: %w", region.ErrUnavailable, err)
	}
	status := answer.Status
	if !status.Authenticated {
		if status.Error != "" {
			err = errors.New("the token was refused: " + status.Error)
		}
		return nil, false, err
	}
	// An API server that ignores audiences returns none: its tokens may be meant for another service.
	audiences := r.audiences.Intersect(status.Audiences)
	if len(audiences) == 0 {
		return nil, false, errors.New("the token is for none of the audiences")
	}
	extra := map[string][]string{}
	for key, values := range status.User.Extra {
		extra[key] = values
	}
	return &authenticator.Response{Audiences: audiences, User: &user.DefaultInfo{
		Name: status.User.Username, UID: status.User.UID, Groups: status.User.Groups, Extra: extra,
	}}, true, nil
}
