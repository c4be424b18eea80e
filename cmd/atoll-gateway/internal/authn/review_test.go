// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/region"
)

// plane answers TokenReviews.
type plane struct {
	mu    sync.Mutex
	asked int
	code  int           // if not zero, the answer
	delay time.Duration // before the answer
}

func (p *plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked++
	code, delay := p.code, p.delay
	p.mu.Unlock()
	var review authenticationv1.TokenReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path != "/apis/authentication.k8s.io/v1/tokenreviews" {
		http.Error(w, "want a TokenReview", http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
		return
	}
	if code != 0 {
		http.Error(w, "no", code)
		return
	}
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
	switch review.Spec.Token {
	case "alice":
		if slices.Contains(review.Spec.Audiences, "gateway") {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"gateway"},
				User: authenticationv1.UserInfo{Username: "alice", UID: "1", Groups: []string{"dev", "system:authenticated"}}}
		}
	case "deaf": // an authenticator that knows no audiences
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "deaf"}}
	default:
		review.Status.Error = "the token has expired"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review)
}

func (p *plane) set(code int, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.code, p.delay = code, delay
}

func (p *plane) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func reviewOf(t *testing.T, p *plane, ttl time.Duration, audiences ...string) (*Authenticator, func()) {
	t.Helper()
	server, ca := serve(t, p)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["x"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: []byte(ca)}
	kubeconfig.AuthInfos["x"] = &clientcmdapi.AuthInfo{Token: "gateway-of-the-plane"}
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	kubeconfig.CurrentContext = "x"
	data, err := clientcmd.Write(*kubeconfig)
	require.NoError(t, err)
	return newAuthenticator(t, &config.Authentication{TokenReview: &config.TokenReview{
		KubeconfigFile: file(t, "kubeconfig", string(data)), Audiences: audiences,
		CacheTTL: &metav1.Duration{Duration: ttl}, Timeout: &metav1.Duration{Duration: 500 * time.Millisecond},
	}}), server.Close
}

func TestTokenReview(t *testing.T) {
	p := &plane{}
	a, stop := reviewOf(t, p, time.Minute, "gateway")
	_, caller, err := a.Authenticate(request(t, "alice"))
	require.NoError(t, err)
	require.Equal(t, []string{"dev"}, caller.Acting.Groups)

	for _, token := range []string{"mallory", "deaf"} {
		_, _, err = a.Authenticate(request(t, token))
		require.ErrorIs(t, err, errNobody, token)
		require.NotErrorIs(t, err, region.ErrUnavailable, token)
	}
	// A success is cached, a failure is not.
	before := p.count()
	for range 3 {
		_, _, err = a.Authenticate(request(t, "alice"))
		require.NoError(t, err)
		_, _, err = a.Authenticate(request(t, "mallory"))
		require.Error(t, err)
	}
	require.Equal(t, before+3, p.count())

	// If the plane does not review a token, the caller is not refused: it may be right.
	for _, code := range []int{http.StatusForbidden, http.StatusUnauthorized, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		p.set(code, 0)
		_, _, err = a.Authenticate(request(t, "another"))
		require.ErrorIs(t, err, region.ErrUnavailable, fmt.Sprint(code))
		require.NotContains(t, err.Error(), "another")
	}
	p.set(0, time.Hour)
	_, _, err = a.Authenticate(request(t, "another"))
	require.ErrorIs(t, err, region.ErrUnavailable)
	p.set(0, 0)
	stop()
	_, _, err = a.Authenticate(request(t, "another"))
	require.ErrorIs(t, err, region.ErrUnavailable)
}

// A token is asked about again after its time in the cache, and each time without a cache.
func TestTokenReviewIsRepeated(t *testing.T) {
	p := &plane{}
	a, _ := reviewOf(t, p, 0, "gateway")
	for range 3 {
		_, _, err := a.Authenticate(request(t, "alice"))
		require.NoError(t, err)
	}
	require.Equal(t, 3, p.count())

	p = &plane{}
	a, _ = reviewOf(t, p, 20*time.Millisecond, "gateway")
	require.Eventually(t, func() bool {
		_, _, err := a.Authenticate(request(t, "alice"))
		require.NoError(t, err)
		return p.count() > 1
	}, time.Minute, time.Millisecond)
}

// A token for another service is refused.
func TestTokenReviewOfAnotherAudience(t *testing.T) {
	a, _ := reviewOf(t, &plane{}, 0, "another")
	_, _, err := a.Authenticate(request(t, "alice"))
	require.ErrorIs(t, err, errNobody)
	_, err = New(t.Context(), &config.Authentication{TokenReview: &config.TokenReview{
		KubeconfigFile: "none", Timeout: &metav1.Duration{}, CacheTTL: &metav1.Duration{},
	}}, nil)
	require.ErrorContains(t, err, "authentication.tokenReview: kubeconfigFile: ")
}
