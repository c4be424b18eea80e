// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

// peer answers with the user and the path of the request. In a program, an API server takes its place.
type peer struct{}

func (peer) RoundTrip(req *http.Request) (*http.Response, error) {
	body := fmt.Sprintf("%s asks for %s", req.Header.Get("Impersonate-User"), req.URL.Path)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

func peers() region.Directory {
	creds, err := region.FromConfig(&rest.Config{Host: "https://eu-west.example.com", BearerToken: "library", Transport: peer{}})
	if err != nil {
		panic(err)
	}
	conn, err := region.NewConn(region.Peer{
		Name: "eu-west", Regions: []region.Key{{Provider: "loodse", Name: "eu-west-1"}}, Credentials: creds,
	}, region.ConnOptions{})
	if err != nil {
		panic(err)
	}
	return region.Fixed(conn)
}

// authenticate belongs to the embedding program. In this example, the token is the user's name.
func authenticate(r *http.Request) (router.Identity, error) {
	name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return router.Identity{}, errors.New("no token")
	}
	return router.Impersonate(router.User{Name: name, Groups: []string{"dev"}}), nil
}

func ask(h http.Handler, path, token string) {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, http.NoBody)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
}

func ExampleNew() {
	routes, err := router.New(peers(), router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	gateway, err := proxy.New(routes, authenticate, proxy.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask(gateway, "/regions/eu-west-1.loodse/api/v1/pods", "alice")
	ask(gateway, "/regions/eu-west-1.loodse/api/v1/pods", "")
	ask(gateway, "/regions/eu-west-1.loodse/../peers", "alice")
	// Output:
	// 200 alice asks for /api/v1/pods
	// 401 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"it is not known who makes the request","reason":"Unauthorized","code":401}
	// 400 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the path has a dot segment","reason":"BadRequest","code":400}
}

func ExamplePeers() {
	everybody, err := router.New(proxy.Peers(peers()), router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	routes, err := router.New(peers(), router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	gateway, err := proxy.New(routes, authenticate, proxy.Options{
		Peers:    everybody,
		Operator: func(_ *http.Request, id router.Identity) bool { return id.String() == `user "operator"` },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask(gateway, "/peers/eu-west/version", "operator")
	ask(gateway, "/peers/eu-west/version", "alice")
	// Output:
	// 200 operator asks for /version
	// 404 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"nothing is served at this path; want /regions/NAME.PROVIDER/...","reason":"NotFound","code":404}
}
