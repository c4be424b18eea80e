// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

const kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: peer, cluster: {server: "https://eu-west.example.com"}}]
users: [{name: atoll, user: {token: secret}}]
contexts: [{name: peer, context: {cluster: peer, user: atoll}}]
`

// peer responds to the requests of a Ring. In a program, it is an API server.
type peer struct{}

func (peer) RoundTrip(req *http.Request) (*http.Response, error) {
	body := "ok"
	switch req.URL.Path {
	case "/api/v1/namespaces/kube-system":
		body = `{"metadata":{"name":"kube-system","uid":"` + req.URL.Host + `"}}`
	case "/version":
		body = `{"gitVersion":"v1.36.0"}`
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

func describe(name region.PeerName, regions ...region.Key) region.Peer {
	creds, err := region.FromConfig(&rest.Config{Host: "https://" + string(name) + ".example.com", Transport: peer{}})
	if err != nil {
		panic(err)
	}
	return region.Peer{Name: name, Regions: regions, Credentials: creds}
}

func ExampleParseKey() {
	k, err := region.ParseKey("eu-west-1.loodse")
	fmt.Println(k.Name, k.Provider, err)
	_, err = region.ParseKey("eu-west-1")
	fmt.Println(err)
	// Output:
	// eu-west-1 loodse <nil>
	// region "eu-west-1": want NAME.PROVIDER, such as eu-west-1.loodse
}

func ExampleParseKubeconfig() {
	creds, err := region.ParseKubeconfig([]byte(kubeconfig), region.Trust{})
	fmt.Println(strings.HasPrefix(creds.String(), "eu-west.example.com ("), err)

	hostile := strings.Replace(kubeconfig, "token: secret", "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", 1)
	_, err = region.ParseKubeconfig([]byte(hostile), region.Trust{})
	fmt.Println(err)
	// Output:
	// true <nil>
	// users[0].user.tokenFile: names a local file, which would be sent to the server; accepted: token
}

func ExampleFromConfig() {
	_, err := region.FromConfig(&rest.Config{})
	fmt.Println(err)
	// Output: Host: is empty; accepted: the address of an API server
}

func ExampleNewSnapshot() {
	k := region.Key{Provider: "loodse", Name: "eu-west-1"}
	s, err := region.NewSnapshot(region.Peer{Name: "eu-west", Regions: []region.Key{k}}, region.Peer{Name: "us-east"})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, ok := s.Locate(k)
	fmt.Println(p.Name, ok)
	_, err = region.NewSnapshot(region.Peer{Name: "eu-west", Regions: []region.Key{k}}, region.Peer{Name: "us-east", Regions: []region.Key{k}})
	fmt.Println(err)
	// Output:
	// eu-west true
	// region "eu-west-1.loodse" is served by peer "eu-west" and by peer "us-east"; one peer serves a region
}

func ExampleFromPeers() {
	source, err := region.FromPeers(describe("eu-west"), describe("us-east"))
	fmt.Println(source != nil, err)
	_, err = region.FromPeers(region.Peer{Name: "eu-west"})
	fmt.Println(err)
	// Output:
	// true <nil>
	// peer eu-west: configure: has no credentials; make them with ParseKubeconfig or FromConfig
}

// first runs source until it has published a Snapshot.
func first(source region.Source) *region.Snapshot {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var snapshot *region.Snapshot
	err := source.Run(ctx, func(s *region.Snapshot) {
		snapshot = s
		cancel()
	})
	if err != nil {
		fmt.Println(err)
	}
	return snapshot
}

func ExampleFromDir() {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "eu-west.kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	source, err := region.FromDir(dir, region.Trust{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for p := range first(source).Peers() {
		fmt.Println(p.Name)
	}
	// Output: eu-west
}

func ExampleFromFile() {
	source, err := region.FromFile("testdata/peers.yaml", region.Trust{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for k, p := range first(source).Regions() {
		fmt.Println(k, "is served by", p.Name, "in", p.Labels["continent"])
	}
	// Output:
	// eu-west-1.loodse is served by eu-west in europe
	// us-east-1.loodse is served by us-east in america
}

func ExampleKeep() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	central, err := region.FromPeers(describe("eu-west", region.Key{Provider: "loodse", Name: "eu-west-1"}))
	if err != nil {
		panic(err)
	}
	source, err := region.Keep(central, filepath.Join(dir, "peers.json"), region.KeepOptions{})
	if err != nil {
		panic(err)
	}
	ring, err := region.NewRing(source, region.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ring.Start(ctx) }()
	<-ring.Synced()
	since, kept := source.Since()
	fmt.Println(ring.Snapshot().Len(), kept, since.IsZero())
	cancel()
	fmt.Println(<-ended)
	// Output:
	// 1 false true
	// <nil>
}

func ExampleNewRing() {
	source, err := region.FromPeers(describe("eu-west", region.Key{Provider: "loodse", Name: "eu-west-1"}), describe("us-east"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ring, err := region.NewRing(source, region.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ring.Start(ctx) }()
	<-ring.Synced()
	for p := range ring.Snapshot().Peers() {
		fmt.Println(p.Name, p.Regions)
	}
	cancel()
	fmt.Println(<-ended)
	// Output:
	// eu-west [eu-west-1.loodse]
	// us-east []
	// <nil>
}

// If the first read of a source fails, the Ring ends, and so does the wait for the peers.
func ExampleRing_Start() {
	source, err := region.FromFile("testdata/there-is-no-such-file.yaml", region.Trust{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ring, err := region.NewRing(source, region.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- ring.Start(context.Background()) }()
	select {
	case <-ring.Synced():
		fmt.Println("the peers are known")
	case err = <-ended:
		fmt.Println("the source cannot be read:", errors.Is(err, fs.ErrNotExist))
	case <-time.After(10 * time.Second):
		fmt.Println("the source has not published yet")
	}
	// Output: the source cannot be read: true
}

func ExampleNewConn() {
	conn, err := region.NewConn(describe("eu-west"), region.ConnOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	uid, err := conn.UID(context.Background())
	fmt.Println(conn.Peer(), uid, err)
	// Output: eu-west eu-west.example.com <nil>
}

func ExampleFixed() {
	conn, err := region.NewConn(describe("eu-west"), region.ConnOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = region.Fixed(conn).Conn("us-east")
	fmt.Println(err, errors.Is(err, region.ErrUnknownPeer))
	// Output: peer us-east: connect: unknown peer true
}

func ExampleAPIFor() {
	api, err := region.APIFor(&rest.Config{Host: "https://eu-west.example.com", Transport: peer{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(api.Dynamic() != nil, api.Metadata() != nil, api.Discovery() != nil)
	// Output: true true true
}

func ExampleAPIOf() {
	api, err := region.APIFor(&rest.Config{Host: "https://eu-west.example.com", Transport: peer{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	same := region.APIOf(api.Dynamic(), api.Metadata(), api.Discovery())
	fmt.Println(same.Dynamic() == api.Dynamic())
	// Output: true
}

func ExampleEach() {
	eu, err1 := region.NewConn(describe("eu-west"), region.ConnOptions{})
	us, err2 := region.NewConn(describe("us-east"), region.ConnOptions{})
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	identify := func(ctx context.Context, c *region.Conn) (string, error) {
		if c.Peer() == "us-east" {
			return "", errors.New("connection refused")
		}
		uid, err := c.UID(ctx)
		return string(uid), err
	}
	results, err := region.Each(context.Background(), region.Fixed(eu, us), "identify", region.Quorum(1), identify)
	fmt.Println(len(results.Err().Error()) > 0, err)
	_, err = region.Each(context.Background(), region.Fixed(eu, us), "identify", region.All(), identify)
	fmt.Println(err)
	// Output:
	// true <nil>
	// identify: 1 of 2 peers failed: peer us-east: connection refused
}

func ExampleResultsOf() {
	results := region.ResultsOf("survey",
		region.Outcome[int]{Peer: "us-east", Err: &region.Error{Peer: "us-east", Op: "survey", Err: region.ErrUnavailable}},
		region.Outcome[int]{Peer: "eu-west", Value: 3},
	)
	for o := range results.All() {
		fmt.Println(o.Peer, o.Value)
	}
	fmt.Println(results.Complete(), results.Err())
	// Output:
	// eu-west 3
	// us-east 0
	// false survey: 1 of 2 peers failed: peer us-east: peer is unavailable
}

func ExampleWithAttempt() {
	conn, err := region.NewConn(describe("eu-west"), region.ConnOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var attempt region.Attempt
	fmt.Println(attempt.Sent(), attempt.Status())
	_, err = conn.UID(region.WithAttempt(context.Background(), &attempt))
	fmt.Println(attempt.Sent(), attempt.Status(), err)
	// Output:
	// false 0
	// true 200 <nil>
}

func ExampleEngage() {
	conn, err := region.NewConn(describe("eu-west"), region.ConnOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = region.Engage(ctx, region.Fixed(conn), func(ctx context.Context, c *region.Conn) error {
		fmt.Println("working with", c.Peer())
		cancel()
		<-ctx.Done()
		return nil
	})
	fmt.Println(err)
	// Output:
	// working with eu-west
	// <nil>
}
