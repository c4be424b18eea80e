// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	accounts   = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// issuer makes tokens of the gateway's service account in a plane. Each token is bound to a Secret
// of its own.
type issuer struct {
	plane           *plane.Plane
	key             region.Key
	client          dynamic.Interface
	namespace, name string
}

// issuerOf returns the issuer of a plane. It reads the name of the gateway's service account from
// the gateway's token.
func (g *gateway) issuerOf(t *testing.T, i int, key region.Key) *issuer {
	t.Helper()
	conn, err := g.ring.Conn(region.PeerName(g.planes[i].Name()))
	require.NoError(t, err)
	config, err := conn.StreamConfig()
	require.NoError(t, err)
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(config.BearerToken, ".")[1])
	require.NoError(t, err)
	var of struct{ Sub string }
	require.NoError(t, json.Unmarshal(claims, &of))
	who := strings.Split(of.Sub, ":")
	require.Len(t, who, 4)
	return &issuer{plane: g.planes[i], key: key, client: planetest.Dynamic(t, g.planes[i].Config()), namespace: who[2], name: who[3]}
}

// issue creates a Secret with the given name and returns the peer with a token that is valid while
// the Secret exists.
func (i *issuer) issue(t *testing.T, name string) region.Peer {
	t.Helper()
	secret, err := i.client.Resource(secrets).Namespace(i.namespace).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	answer, err := i.client.Resource(accounts).Namespace(i.namespace).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": i.name},
		"spec": map[string]any{"boundObjectRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "name": name, "uid": string(secret.GetUID())}},
	}}, metav1.CreateOptions{}, "token")
	require.NoError(t, err)
	token, _, err := unstructured.NestedString(answer.Object, "status", "token")
	require.NoError(t, err)
	return peerWith(t, i.plane, token, i.key)
}

// peerWith returns a plane as a peer with a token.
func peerWith(t *testing.T, p *plane.Plane, token string, key region.Key) region.Peer {
	t.Helper()
	config, err := clientcmd.Load(p.Kubeconfig())
	require.NoError(t, err)
	for _, auth := range config.AuthInfos {
		auth.Token = token
	}
	kubeconfig, err := clientcmd.Write(*config)
	require.NoError(t, err)
	return planetest.PeerAs(t, p, kubeconfig, key)
}

// revoke invalidates the token that is bound to the Secret with the given name. An API server that
// has seen the token accepts it for 10 more seconds.
func (i *issuer) revoke(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, i.client.Resource(secrets).Namespace(i.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// clientOf returns alice's configuration and client, through the gateway.
func (g *gateway) clientOf(t *testing.T, key region.Key) (*rest.Config, dynamic.Interface) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", g.kubeconfig(t, "/regions/"+key.String(), "token-of-alice"))
	require.NoError(t, err)
	config.QPS = -1
	return config, planetest.Dynamic(t, config)
}

// TestRotation replaces the gateway's credentials for eu a hundred times. Each time except the
// first, it revokes the preceding token. It replaces the credentials for us once, after us has
// rejected them. The gateway has only the rights of rights.Impersonate. None of alice's requests
// may fail.
func TestRotation(t *testing.T) {
	g := newGatewayOf(t, router.Options{Budget: router.Budget{QPS: -1}})
	namespace := planetest.Namespace(t, g.planes...)
	for _, p := range g.planes {
		formTeam(t, p, namespace)
	}
	atEU, atUS := g.issuerOf(t, 0, eu), g.issuerOf(t, 1, us)
	euConn, err := g.ring.Conn(region.PeerName(g.planes[0].Name()))
	require.NoError(t, err)
	usConn, err := g.ring.Conn(region.PeerName(g.planes[1].Name()))
	require.NoError(t, err)
	rotated := func(conn *region.Conn, generation uint64) {
		t.Helper()
		planetest.Eventually(t, time.Minute, "new credentials", func(context.Context) error {
			if h := conn.Health(); h.Generation < generation {
				return fmt.Errorf("generation %d is in use: %w", h.Generation, h.Rotation)
			}
			return nil
		})
	}
	g.source.Put(atUS.issue(t, "gateway-first"))
	rotated(usConn, 2)

	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	var group errgroup.Group
	for worker, key := range []region.Key{eu, eu, us, us} {
		config, client := g.clientOf(t, key)
		plain, err := rest.HTTPClientFor(config)
		require.NoError(t, err)
		defer plain.CloseIdleConnections()
		name := fmt.Sprintf("settings-%d", worker)
		group.Go(func() error {
			for ; ctx.Err() == nil; calls.Add(2) {
				if err := getOnce(t.Context(), plain, config.Host+"/api/v1/namespaces/"+namespace+"/configmaps"); err != nil {
					return fmt.Errorf("region %s: %w", key, err)
				}
				o := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"n": fmt.Sprint(calls.Load())},
				}}
				if _, err := client.Resource(configMaps).Namespace(namespace).Apply(t.Context(), name, o, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
					return fmt.Errorf("region %s: %w", key, err)
				}
			}
			return nil
		})
	}
	select {
	case <-g.source.Asked(): // drop a value from before the rotation
	default:
	}
	// The second token is provided as soon as us rejects the first one; requests wait for it.
	second, known := atUS.issue(t, "gateway-second"), make(chan bool, 1)
	go func() {
		select {
		case <-g.source.Asked():
			g.source.Put(second)
			known <- true
		case <-time.After(2 * time.Minute):
			known <- false
		}
	}()
	atUS.revoke(t, "gateway-first")
	for i := 1; i <= 100; i++ {
		g.source.Put(atEU.issue(t, fmt.Sprintf("gateway-%d", i)))
		rotated(euConn, uint64(i)+1)
		if i > 1 {
			atEU.revoke(t, fmt.Sprintf("gateway-%d", i-1))
		}
	}
	require.True(t, <-known, "us does not refuse a token whose Secret is gone")
	rotated(usConn, 3)
	before := calls.Load()
	planetest.Eventually(t, time.Minute, "requests after the last rotation", func(context.Context) error {
		if calls.Load() < before+100 {
			return errors.New("there are too few")
		}
		return nil
	})
	cancel()
	require.NoError(t, group.Wait(), "a request failed")
	t.Logf("%d requests over 102 rotations, none failed", calls.Load())
}

// getOnce sends one request, without client-go's retries.
func getOnce(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %d: %s", resp.StatusCode, body)
	}
	return err
}

// TestRefusedGateway checks the proxy's answers if a real API server refuses the impersonation of
// the caller, or rejects the gateway's credentials.
func TestRefusedGateway(t *testing.T) {
	g := newGateway(t)
	namespace := planetest.Namespace(t, g.planes[0])
	formTeam(t, g.planes[0], namespace)
	refused := &gateway{planes: g.planes}
	refused.serve(t, router.Options{}, peerWith(t, g.planes[0], "of-nobody", eu))
	planetest.Eventually(t, time.Minute, "the ring", func(context.Context) error {
		_, err := refused.ring.Conn(region.PeerName(g.planes[0].Name()))
		return err
	})
	ask := func(g *gateway, token, path string, header http.Header) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.server.URL+"/regions/eu-west-1.loodse"+path, http.NoBody)
		require.NoError(t, err)
		req.Header = header.Clone()
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := g.server.Client().Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		if resp.StatusCode == http.StatusServiceUnavailable {
			require.Equal(t, "1", resp.Header.Get("Retry-After"))
		}
		return resp.StatusCode, string(body)
	}
	const ours = "does not accept the credentials of this gateway"
	list, exec := "/api/v1/namespaces/"+namespace+"/configmaps", "/api/v1/namespaces/"+namespace+"/pods/web/exec?command=true"
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
	inProtobuf := http.Header{"Accept": {"application/vnd.kubernetes.protobuf"}}

	// The gateway may not impersonate carol. The server's message depends on earlier requests of
	// the gateway, so the test sends its requests twice.
	for range 2 {
		for path, header := range map[string]http.Header{list: {}, list + "?watch=true": {}, exec: upgrade, "/version": {}, list + "?limit=1": inProtobuf} {
			code, body := ask(g, "token-of-carol", path, header)
			require.Equal(t, http.StatusServiceUnavailable, code, "%s: %s", path, body)
			require.Contains(t, body, ours)
			code, body = ask(g, "token-of-bob", list, header)
			require.Equal(t, http.StatusForbidden, code, body)
			require.Contains(t, body, "bob", "a refusal of the user is passed on to the user")
		}
		code, body := ask(g, "token-of-alice", list, http.Header{})
		require.Equal(t, http.StatusOK, code, body)
	}
	// No peer accepts this gateway's credentials.
	for path, header := range map[string]http.Header{list: {}, list + "?watch=true": {}, exec: upgrade, list + "?limit=1": inProtobuf} {
		code, body := ask(refused, "token-of-alice", path, header)
		require.Equal(t, http.StatusServiceUnavailable, code, "%s: %s", path, body)
		require.Contains(t, body, ours)
		require.NotContains(t, body, g.planes[0].Name())
	}
}
