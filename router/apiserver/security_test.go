// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

// recorder is a region that records the headers of its requests. It answers all of them with answer.
type recorder struct {
	mu      sync.Mutex
	headers []http.Header
	answer  http.HandlerFunc
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	if strings.Contains(req.URL.Path, "/configmaps") {
		r.headers = append(r.headers, req.Header.Clone())
	}
	answer := r.answer
	r.mu.Unlock()
	answer(w, req)
}

func (r *recorder) received() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headers
}

func emptyList(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
}

// attacked serves one recorded region. It knows alice, and mallory in the group system:masters.
func attacked(t *testing.T, answer http.HandlerFunc) (*recorder, *httptest.Server) {
	t.Helper()
	r := &recorder{answer: answer}
	peer := httptest.NewTLSServer(r)
	t.Cleanup(peer.Close)
	credentials, err := region.FromConfig(&rest.Config{Host: peer.URL, BearerToken: "ours", TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	require.NoError(t, err)
	source, err := region.FromPeers(region.Peer{Name: "peer-a", Regions: []region.Key{{Provider: "loodse", Name: "eu"}}, Credentials: credentials})
	require.NoError(t, err)
	ring, err := region.NewRing(source, region.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- ring.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	<-ring.Synced()
	routes, err := router.New(ring, router.Options{})
	require.NoError(t, err)
	single, err := proxy.New(routes, func(r *http.Request) (router.Identity, error) {
		switch r.Header.Get("Authorization") {
		case "Bearer alice":
			return router.Impersonate(router.User{Name: "alice"}), nil
		case "Bearer mallory":
			return router.Impersonate(router.User{Name: "mallory", Groups: []string{"system:masters"}}), nil
		case "Bearer unnamed":
			return router.Impersonate(router.User{Groups: []string{"dev"}}), nil
		case "Bearer ourselves":
			return router.Self(), nil
		case "Bearer nobody":
			return router.Identity{}, nil
		}
		return router.Identity{}, errors.New("the token is not known")
	}, proxy.Options{})
	require.NoError(t, err)
	handler, err := New(routes, single, Options{})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return r, server
}

const ofAllRegions = "/regions/*/api/v1/namespaces/default/configmaps"

// send sends a request with the given header lines. It follows no redirect.
func send(t *testing.T, server *httptest.Server, method, path, body string, lines ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer alice")
	for _, line := range lines {
		key, value, _ := strings.Cut(line, ": ")
		req.Header.Set(key, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, string(data)
}

// Advisories for aggregated APIs and proxies, tried against the address of all regions: the request is refused, and no
// region gets it.
func TestAdvisoriesRefused(t *testing.T) {
	for advisory, c := range map[string]struct {
		code  int
		lines []string
	}{
		"CVE-2026-23990, an empty identity":                                   {http.StatusUnauthorized, []string{"Authorization: Bearer nobody"}},
		"CVE-2026-23990, a user without a name":                               {http.StatusForbidden, []string{"Authorization: Bearer unnamed"}},
		"CVE-2026-23990, an empty Impersonate-User":                           {http.StatusForbidden, []string{"Impersonate-User: "}},
		"CVE-2024-56513 and CVE-2023-30622, rights that are not the caller's": {http.StatusUnauthorized, []string{"Authorization: Bearer ourselves"}},
		"CVE-2024-9779 and CVE-2026-4740, an unknown caller":                  {http.StatusUnauthorized, []string{"Authorization: Bearer x"}},
		"GHSA-c7xh-gjv4-4jgv, a global group":                                 {http.StatusForbidden, []string{"Authorization: Bearer mallory"}},
		"GHSA-c7xh-gjv4-4jgv, a global group by header":                       {http.StatusForbidden, []string{"Impersonate-Group: system:masters"}},
		"GHSA-pvxj-25m6-7vqr, a header that removes our own":                  {http.StatusBadRequest, []string{"Connection: Impersonate-User"}},
		"CVE-2018-1002105, an upgrade of a request that has none":             {http.StatusBadRequest, []string{"Connection: Upgrade", "Upgrade: h2c"}},
	} {
		t.Run(advisory, func(t *testing.T) {
			region, server := attacked(t, emptyList)
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
				code, _, body := send(t, server, method, ofAllRegions, "{}", c.lines...)
				require.Equal(t, c.code, code, "%s: %s", method, body)
			}
			require.Empty(t, region.received())
		})
	}
}

// Headers that would change the identity of a request to all regions do not reach a region.
func TestAdvisoriesStripped(t *testing.T) {
	for advisory, line := range map[string]string{
		"GHSA-c8w2-fgvx-vhv4, X-Remote-User":  "X-Remote-User: attacker",
		"GHSA-c8w2-fgvx-vhv4, X-Remote-Group": "X-Remote-Group: attacker",
		"GHSA-c8w2-fgvx-vhv4, X-Remote-Extra": "X-Remote-Extra-Scopes: attacker",
		"a cookie of the gateway":             "Cookie: session=attacker",
		"a forwarded address":                 "X-Forwarded-For: attacker",
	} {
		t.Run(advisory, func(t *testing.T) {
			region, server := attacked(t, emptyList)
			code, _, body := send(t, server, http.MethodGet, ofAllRegions, "", line)
			require.Equal(t, http.StatusOK, code, body)
			require.NotEmpty(t, region.received())
			for _, header := range region.received() {
				require.Equal(t, []string{"alice"}, header.Values("Impersonate-User"))
				require.Equal(t, []string{"Bearer ours"}, header.Values("Authorization"))
				require.NotContains(t, fmt.Sprint(header), "attacker")
			}
		})
	}
}

// CVE-2022-3172 and CVE-2018-1002102: a redirect by a region would send a client's credentials to a host of its choice.
func TestAdvisoryRedirect(t *testing.T) {
	_, server := attacked(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://attacker.example/", http.StatusTemporaryRedirect)
	})
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		code, header, body := send(t, server, method, ofAllRegions+map[string]string{http.MethodDelete: "/a@eu.loodse"}[method], "")
		require.GreaterOrEqual(t, code, http.StatusBadRequest, body)
		require.Empty(t, header.Get("Location"))
		require.NotContains(t, body, "attacker.example")
	}
}

// CVE-2019-11253: a body of YAML that grows without limit when it is decoded.
func TestAdvisoryBomb(t *testing.T) {
	region, server := attacked(t, emptyList)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'l'; i++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	for method, media := range map[string]string{http.MethodPost: "application/yaml", http.MethodPatch: "application/apply-patch+yaml"} {
		path := ofAllRegions
		if method == http.MethodPatch {
			path += "/a@eu.loodse?fieldManager=x"
		}
		code, _, body := send(t, server, method, path, bomb, "Content-Type: "+media)
		require.Equal(t, http.StatusBadRequest, code, body)
	}
	require.Empty(t, region.received())
}
