// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// peer answers each request with the requester's identity as the resourceVersion. In a program, an API server takes
// its place.
type peer struct{}

func (peer) RoundTrip(req *http.Request) (*http.Response, error) {
	who := req.Header.Get("Impersonate-User")
	if who == "" {
		who = req.Header.Get("Authorization")
	}
	body := fmt.Sprintf(`{"kind":"CouchDBList","apiVersion":"eu-west-1.loodse/v1","metadata":{"resourceVersion":%q},"items":[]}`, who)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}, nil
}

func peers() region.Directory {
	creds, err := region.FromConfig(&rest.Config{Host: "https://eu-west.example.com", BearerToken: "library", Transport: peer{}})
	if err != nil {
		panic(err)
	}
	conn, err := region.NewConn(region.Peer{
		Name:        "eu-west",
		Regions:     []region.Key{{Provider: "loodse", Name: "eu-west-1"}},
		Credentials: creds,
	}, region.ConnOptions{})
	if err != nil {
		panic(err)
	}
	return region.Fixed(conn)
}

func ExampleNew() {
	routes, err := router.New(peers(), router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	route, err := routes.Lookup(context.Background(), region.Key{Provider: "loodse", Name: "eu-west-1"})
	fmt.Println(route.Peer, err)
	_, err = routes.Lookup(context.Background(), region.Key{Provider: "not-loodse", Name: "eu-west-1"})
	fmt.Println(err)
	// Output:
	// eu-west <nil>
	// region eu-west-1.not-loodse: lookup: unknown region (1 known: eu-west-1.loodse; to add it, list it under the regions of the peer that serves it)
}

func ExampleRouter_Client() {
	routes, err := router.New(peers(), router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	couchdbs := schema.GroupVersionResource{Group: "eu-west-1.loodse", Version: "v1", Resource: "couchdbs"}
	for _, id := range []router.Identity{
		router.Self(),
		router.Caller("token-of-alice"),
		router.Impersonate(router.User{Name: "alice", Groups: []string{"dev"}}),
		router.Impersonate(router.User{Name: "alice", Groups: []string{"system:masters"}}),
		{},
	} {
		client, err := routes.Client(region.Key{Provider: "loodse", Name: "eu-west-1"}, id)
		if err != nil {
			fmt.Println(err)
			continue
		}
		list, err := client.Dynamic().Resource(couchdbs).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s: the peer saw %s\n", id, list.GetResourceVersion())
	}
	// Output:
	// self: the peer saw Bearer library
	// caller: the peer saw Bearer token-of-alice
	// user "alice": the peer saw alice
	// router: client of region eu-west-1.loodse: identity: group "system:masters" of user "alice" may not be impersonated; see router.Options.Groups
	// router: client of region eu-west-1.loodse: identity: none is given; use router.Caller, router.Impersonate or router.Self
}

func ExampleCaller() {
	fmt.Println(router.Caller("token-of-alice"))
	// Output: caller
}

func ExampleImpersonate() {
	fmt.Println(router.Impersonate(router.User{Name: "alice"}))
	// Output: user "alice"
}

func ExampleSelf() {
	fmt.Println(router.Self())
	// Output: self
}

func ExampleCallerAt() {
	routes, err := router.New(peers(), router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := routes.Client(region.Key{Provider: "loodse", Name: "eu-west-1"}, router.CallerAt("us-east", "token-of-us-east"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(context.Background(), metav1.ListOptions{})
	fmt.Println(errors.Is(err, router.ErrIdentity))
	// Output: true
}

func ExamplePrefixSystem() {
	mapping := router.PrefixSystem("hub:")
	u, err := mapping(region.Key{}, router.User{Name: "system:serviceaccount:ci:deployer", Groups: []string{"system:serviceaccounts", "dev"}})
	fmt.Println(u.Name, u.Groups, err)
	// Output: hub:system:serviceaccount:ci:deployer [hub:system:serviceaccounts dev] <nil>
}

// A program knows its peers and asks a central plane for their regions. After a restart it routes without that
// plane.
func ExampleOpenCache() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	asia := region.Key{Provider: "loodse", Name: "asia-1"}
	for _, plane := range []router.ResolverFunc{
		func(context.Context, region.Key) (region.PeerName, error) { return "eu-west", nil },
		func(context.Context, region.Key) (region.PeerName, error) {
			return "", errors.New("connection refused")
		},
	} {
		cache, err := router.OpenCache(filepath.Join(dir, "routes"))
		if err != nil {
			fmt.Println(err)
			return
		}
		routes, err := router.New(peers(), router.Options{Cache: cache, Resolver: plane})
		if err != nil {
			fmt.Println(err)
			return
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- routes.Start(ctx) }()
		route, err := routes.Lookup(ctx, asia)
		fmt.Println(route.Peer, "by the", route.From, err)
		stop()
		if err := <-ended; err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// eu-west by the resolver <nil>
	// eu-west by the cache <nil>
}
