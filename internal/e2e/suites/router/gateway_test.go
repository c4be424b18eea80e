// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/proxy"
)

var (
	eu = region.Key{Provider: "loodse", Name: "eu-west-1"}
	us = region.Key{Provider: "loodse", Name: "us-east-1"}
)

// impersonator describes the only rights of the gateway in a plane.
var impersonator = rights.Impersonation{Users: []string{"alice", "bob"}, Groups: []string{"dev"}}

// gateway serves two planes, over TLS, one by one and as one. It knows its users by their tokens: alice (in the
// group dev), bob, root and carol.
type gateway struct {
	server *httptest.Server
	planes []*plane.Plane // of eu and us
	source *planetest.Source
	ring   *region.Ring
	routes *router.Router
}

func newGateway(t testing.TB) *gateway { return newGatewayOf(t, router.Options{}) }

func newGatewayOf(t testing.TB, opts router.Options) *gateway {
	t.Helper()
	g := &gateway{planes: planetest.Shared(t, 2)}
	role, _, err := rights.Impersonate(impersonator)
	require.NoError(t, err)
	manifest, err := yaml.Marshal(role)
	require.NoError(t, err)
	var peers []region.Peer
	for i, key := range []region.Key{eu, us} {
		kubeconfig, err := g.planes[i].RunAs(t.Context(), manifest)
		require.NoError(t, err)
		peers = append(peers, planetest.PeerAs(t, g.planes[i], kubeconfig, key))
	}
	g.serve(t, opts, peers...)
	for _, p := range peers {
		planetest.Eventually(t, time.Minute, "peer "+string(p.Name), func(context.Context) error {
			conn, err := g.ring.Conn(p.Name)
			if err == nil && conn.Health().State != region.Healthy {
				err = fmt.Errorf("it is %s: %w", conn.Health().State, conn.Health().Err)
			}
			return err
		})
	}
	return g
}

// serve makes g the gateway of a region.Ring of the peers.
func (g *gateway) serve(t testing.TB, opts router.Options, peers ...region.Peer) {
	t.Helper()
	g.source = planetest.NewSource(peers...)
	var err error
	g.ring, err = region.NewRing(g.source, region.Options{Probe: region.ProbeOptions{MaxBackoff: time.Second}})
	require.NoError(t, err)
	start(t, g.ring.Start)
	g.routes, err = router.New(g.ring, opts)
	require.NoError(t, err)
	single, err := proxy.New(g.routes, authenticate, proxy.Options{})
	require.NoError(t, err)
	handler, err := apiserver.New(g.routes, single, apiserver.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	g.server = httptest.NewUnstartedServer(handler)
	g.server.EnableHTTP2 = true
	g.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	g.server.StartTLS()
	t.Cleanup(func() {
		cancel() // ends the streams
		g.server.CloseClientConnections()
		g.server.Close()
	})
}

func authenticate(r *http.Request) (router.Identity, error) {
	switch token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); token {
	case "token-of-alice":
		return router.Impersonate(router.User{Name: "alice", Groups: []string{"dev"}}), nil
	case "token-of-bob":
		return router.Impersonate(router.User{Name: "bob"}), nil
	case "token-of-root":
		return router.Impersonate(router.User{Name: "root", Groups: []string{"system:masters"}}), nil
	case "token-of-carol": // the planes do not let the gateway impersonate carol
		return router.Impersonate(router.User{Name: "carol"}), nil
	default:
		return router.Identity{}, errors.New("the token is not known")
	}
}

// kubeconfig returns a kubeconfig for a user of the gateway, without direct access to a plane.
func (g *gateway) kubeconfig(t testing.TB, path, token string) string {
	t.Helper()
	config := api.NewConfig()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	config.Clusters["gateway"] = &api.Cluster{Server: g.server.URL + path, CertificateAuthorityData: authority}
	config.AuthInfos["user"] = &api.AuthInfo{Token: token}
	config.Contexts["gateway"] = &api.Context{Cluster: "gateway", AuthInfo: "user"}
	config.CurrentContext = "gateway"
	data, err := clientcmd.Write(*config)
	require.NoError(t, err)
	return planetest.WriteKubeconfig(t, "gateway", data)
}

// keyPair writes a self-signed certificate and its key for a kubelet. An API server does not verify
// a kubelet's certificate by default.
func keyPair(t *testing.T, dir string) (certificate, key string) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	pair := server.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	require.NoError(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return certificate, key
}
