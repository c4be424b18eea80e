// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var configMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// load makes unary requests through one client until it is stopped.
type load struct {
	calls, failed atomic.Int64
	stop          func()
}

func (w *world) load(conn *region.Conn) *load {
	l := &load{}
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	l.stop = func() {
		cancel()
		wg.Wait()
	}
	client := conn.Dynamic().Resource(configMapResource).Namespace("default")
	call := func(err error) {
		l.calls.Add(1)
		if err != nil {
			l.failed.Add(1)
			w.t.Error(err)
		}
	}
	for worker := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				obj := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("c-%d-%d", worker, i)},
				}}
				// With a separate context, no call is canceled midway.
				_, err := client.Create(w.t.Context(), obj, metav1.CreateOptions{})
				call(err)
				_, err = client.Get(w.t.Context(), obj.GetName(), metav1.GetOptions{})
				call(err)
				call(client.Delete(w.t.Context(), obj.GetName(), metav1.DeleteOptions{}))
			}
		})
	}
	return l
}

// The test rotates address, CA and certificate a hundred times under load. Before some rotations it writes garbage or a
// kubeconfig of another cluster to the Secret. No call of a client that was made before the first rotation fails, and
// nothing is written to the other cluster.
func TestRotationUnderLoad(t *testing.T) {
	w := newWorld(t, "eu", "us")
	w.parse = func(data []byte) (region.Credentials, error) { return region.ParseKubeconfig(data, region.Trust{}) }
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var doors []string
	for range 5 {
		kubeconfig, err := w.servers["eu"].Listen(ctx)
		require.NoError(t, err)
		doors = append(doors, string(kubeconfig))
	}
	other, err := w.servers["us"].Listen(ctx)
	require.NoError(t, err)

	w.secret("eu-kubeconfig", doors[0])
	w.peer("eu", "eu-kubeconfig")
	p := w.start(PeersOptions{})
	await := func(what string, condition func() bool) {
		t.Helper()
		require.Eventually(t, condition, time.Minute, 2*time.Millisecond, what)
	}
	await("Ready", func() bool { return w.ready("eu") == "True Reachable" })
	conn, err := p.ring.Conn("eu")
	require.NoError(t, err)
	l := w.load(conn)
	for i := 1; i <= 100; i++ {
		switch i % 10 {
		case 3:
			w.secret("eu-kubeconfig", "garbage")
		case 7:
			w.secret("eu-kubeconfig", string(other))
			// Wait for this cause: a rotation that only timed out would be retried.
			await("refused", func() bool { return errors.Is(conn.Health().Rotation, region.ErrOtherCluster) })
		}
		w.secret("eu-kubeconfig", doors[i%len(doors)])
		await("rotated", func() bool { return conn.Health().Generation == uint64(i+1) })
		before := l.calls.Load()
		await("calls on the new credentials", func() bool { return l.calls.Load() > before+4 })
	}
	l.stop()
	require.Zero(t, l.failed.Load())
	require.Empty(t, writes(w.servers["us"]))
	await("Ready", func() bool { return w.ready("eu") == "True Reachable" })
	t.Logf("%d calls over 100 rotations, none failed", l.calls.Load())
}

// gate is a TLS proxy that accepts one bearer token.
type gate struct {
	server *httptest.Server
	token  atomic.Pointer[string]
}

// newGate returns a gate that accepts the token "first".
func newGate(t testing.TB, s *regiontest.Server) *gate {
	t.Helper()
	g := &gate{}
	g.allow("first")
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); token != *g.token.Load() {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusUnauthorized)
			_, _ = rw.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`))
			return
		}
		s.ServeHTTP(rw, r)
	}))
	g.server.EnableHTTP2 = true
	g.server.StartTLS()
	return g
}

func (g *gate) allow(token string) { g.token.Store(&token) }

func (g *gate) kubeconfig(t testing.TB, token string) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   g.server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw}),
	}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "c"
	data, err := clientcmd.Write(*c)
	require.NoError(t, err)
	return string(data)
}

// BenchmarkSecretToRequest measures the time from the change of a Secret until a request succeeds with the new
// credentials, over TLS; the old ones are rejected from the change on. The baseline is the time until a plain watch of
// the Secret shows the change, plus one request; the ratio is the baseline's time divided by the measured time.
func BenchmarkSecretToRequest(b *testing.B) {
	w := newWorld(b, "eu")
	w.parse = func(data []byte) (region.Credentials, error) { return region.ParseKubeconfig(data, region.Trust{}) }
	g := newGate(b, w.servers["eu"])
	defer g.server.Close()
	w.secret("eu-kubeconfig", g.kubeconfig(b, "first"))
	w.peer("eu", "eu-kubeconfig")
	p := w.start(PeersOptions{})
	defer p.stop()
	require.Eventually(b, func() bool { return w.ready("eu") == "True Reachable" }, time.Minute, 10*time.Millisecond)
	conn, err := p.ring.Conn("eu")
	require.NoError(b, err)
	request := func() error {
		_, err := conn.Dynamic().Resource(namespaceResource).Get(b.Context(), "default", metav1.GetOptions{})
		return err
	}
	watch, err := w.client(w.plane, secretResource, Namespace).Watch(b.Context(), metav1.ListOptions{FieldSelector: "metadata.name=eu-kubeconfig"})
	require.NoError(b, err)
	defer watch.Stop()
	<-watch.ResultChan()
	var ours, bare time.Duration
	n := 0
	for ; b.Loop(); n++ {
		token := fmt.Sprintf("token-%d", n)
		kubeconfig := g.kubeconfig(b, token)
		g.allow(token)
		began := time.Now()
		w.secret("eu-kubeconfig", kubeconfig)
		for request() != nil {
		}
		ours += time.Since(began)
		<-watch.ResultChan()

		began = time.Now()
		w.annotate("eu-kubeconfig", token)
		<-watch.ResultChan()
		require.NoError(b, request())
		bare += time.Since(began)
	}
	require.Equal(b, masterv1alpha1.PeerReady, w.get("eu").Status.Phase)
	b.ReportMetric(float64(ours.Milliseconds())/float64(n), "ms/rotation")
	b.ReportMetric(bare.Seconds()/ours.Seconds(), "ratio")
}
