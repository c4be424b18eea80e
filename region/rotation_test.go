// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/transport"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name},
	}}
}

// newConn connects with creds and closes its sockets at the end of the test.
func newConn(t *testing.T, creds Credentials, opts ConnOptions) *Conn {
	t.Helper()
	conn, err := NewConn(Peer{Name: "eu", Credentials: creds}, opts)
	require.NoError(t, err)
	t.Cleanup(func() { conn.current.Load().end() })
	return conn
}

// No call of a client fails while token, CA and address change a hundred times, although each old token is rejected
// before the Conn has the new one.
func TestRotateUnderLoad(t *testing.T) {
	c := newCluster("one", "token-0")
	authorities := []*authority{newAuthority(t), newAuthority(t)}
	addresses := []string{authorities[0].serve(t, c), authorities[1].serve(t, c)}
	conn := newConn(t, credentialsFor(t, addresses[0], authorities[0].pem, "token-0"), ConnOptions{Await: time.Minute})
	client := conn.Dynamic().Resource(widgets).Namespace("default")

	ctx, stop := context.WithCancel(t.Context())
	var calls, failed atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := client.Create(t.Context(), widget(fmt.Sprintf("w-%d-%d", worker, i)), metav1.CreateOptions{})
				if err == nil {
					_, err = client.Get(t.Context(), "w", metav1.GetOptions{})
				}
				calls.Add(2)
				if err != nil {
					failed.Add(1)
					t.Error(err)
				}
			}
		})
	}
	for i := 1; i <= 100; i++ {
		token := fmt.Sprintf("token-%d", i)
		c.setToken(fmt.Sprintf("token-%d", i-1), false)
		before := len(c.usersSeen())
		c.setToken(token, true)
		require.NoError(t, conn.Rotate(t.Context(), credentialsFor(t, addresses[i%2], authorities[i%2].pem, token)))
		require.Eventually(t, func() bool { return len(c.usersSeen()) > before }, time.Minute, time.Millisecond)
	}
	stop()
	wg.Wait()
	require.Zero(t, failed.Load())
	require.EqualValues(t, 101, conn.Health().Generation)
	require.Contains(t, c.usersSeen(), "token:token-100")
	t.Logf("%d calls, none failed", calls.Load())
}

// A 401 makes a request wait for newer credentials; it is then sent again with its body.
func TestUnauthorizedIsAbsorbedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "new")
		refreshed := make(chan struct{}, 10)
		conn := newConn(t, c.credentials(t, "old"), ConnOptions{Refresh: func() { refreshed <- struct{}{} }})
		next := c.credentials(t, "new")
		go func() {
			<-refreshed
			time.Sleep(time.Second)
			_ = conn.Rotate(t.Context(), next)
		}()
		began := time.Now()
		made, err := conn.Dynamic().Resource(widgets).Namespace("default").Create(t.Context(), widget("w"), metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, "w", made.GetName())
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, 1, c.writes)

		// Without newer credentials, the caller gets the 401: after Await at first, then at once.
		c.setToken("new", false)
		for _, wait := range []time.Duration{defaultAwait, 0} {
			began = time.Now()
			_, err = conn.Dynamic().Resource(widgets).Namespace("default").Get(t.Context(), "w", metav1.GetOptions{})
			require.True(t, apierrors.IsUnauthorized(err), "%v", err)
			require.Equal(t, wait, time.Since(began))
		}
	})
}

// The caller gets the 401 at once, and newer credentials are asked for: a proxy sends only such bodies, and without this its
// requests would be rejected until the next probe.
func TestBodyThatCannotBeRewoundIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "new")
		refreshed := 0
		conn := newConn(t, c.credentials(t, "old"), ConnOptions{Await: time.Minute, Refresh: func() { refreshed++ }})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://eu.invalid/apis/x", struct{ *strings.Reader }{strings.NewReader("{}")})
		require.NoError(t, err)
		req.GetBody = nil
		began := time.Now()
		resp, err := conn.own.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
		require.Equal(t, 1, refreshed)
		require.Zero(t, time.Since(began))
	})
}

// A request that the Conn sends again after a 401 does not count as repeated by the transport.
func TestARequestThatIsSentAgainIsTheAttempt(t *testing.T) {
	c := newCluster("one", "new")
	server := httptest.NewTLSServer(c)
	t.Cleanup(server.Close)
	credentials := func(token string) Credentials {
		creds, err := FromConfig(&rest.Config{Host: server.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		}})
		require.NoError(t, err)
		return creds
	}
	refreshed := make(chan struct{}, 10)
	conn := newConn(t, credentials("old"), ConnOptions{Await: time.Minute, Refresh: func() { refreshed <- struct{}{} }})
	next, rotated := credentials("new"), make(chan error)
	go func() {
		<-refreshed
		rotated <- conn.Rotate(t.Context(), next)
	}()
	var attempt Attempt
	_, err := conn.Dynamic().Resource(widgets).Namespace("default").Create(WithAttempt(t.Context(), &attempt), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, <-rotated)
	require.Equal(t, 1, c.writes)
	require.True(t, attempt.Sent())
	require.False(t, attempt.Repeated())
}

func TestRotateRefuses(t *testing.T) {
	one, two := newCluster("one", "a", "b"), newCluster("two", "a")
	var events []RotateEvent
	conn := newConn(t, one.credentials(t, "a"), ConnOptions{Observer: &Observer{
		Rotated: func(_ context.Context, e RotateEvent) { events = append(events, e) },
	}})
	uid, err := conn.UID(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, "one", uid)

	err = conn.Rotate(t.Context(), two.credentials(t, "a"))
	require.ErrorIs(t, err, ErrOtherCluster)
	require.ErrorContains(t, err, "peer eu: rotate:")
	err = conn.Rotate(t.Context(), one.credentials(t, "wrong"))
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
	require.Error(t, conn.Rotate(t.Context(), Credentials{}))
	one.setDown(true)
	require.Error(t, conn.Rotate(t.Context(), one.credentials(t, "b")))
	one.setDown(false)
	require.EqualValues(t, 1, conn.Health().Generation)

	// The credentials in use stay valid. A call of Rotate with the same credentials again is not a rotation.
	_, err = conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, conn.Rotate(t.Context(), conn.current.Load().creds))
	require.NoError(t, conn.Rotate(t.Context(), one.credentials(t, "b")))
	require.EqualValues(t, 2, conn.Health().Generation)
	require.Len(t, events, 5)
	require.NoError(t, events[4].Err)
}

// A stream on replaced credentials continues for Drain. Then the Conn ends it, and its last event is an error that says
// why.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a", "b")
		c.answer = func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		conn := newConn(t, c.credentials(t, "a"), ConnOptions{Drain: time.Minute})
		watch, err := conn.Dynamic().Resource(widgets).Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, conn.Rotate(t.Context(), c.credentials(t, "b")))
		var ends []error
		for e := range watch.ResultChan() {
			ends = append(ends, apierrors.FromObject(e.Object))
		}
		require.Equal(t, time.Minute, time.Since(began))
		require.Len(t, ends, 1)
		require.ErrorContains(t, ends[0], errDrained.Error())
	})
}

// A request with a token is sent with that token only, although the peer's own credential is a certificate.
func TestCallerIsNeverThePeer(t *testing.T) {
	c := newCluster("one", "alice")
	a := newAuthority(t)
	server := a.serve(t, c)
	_, _, cert, key := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "atoll"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	creds, err := ParseKubeconfig(kubeconfig(t, server, a.pem, func(k *clientcmdv1.Config) {
		k.AuthInfos[0].AuthInfo = clientcmdv1.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	}), Trust{})
	require.NoError(t, err)
	conn := newConn(t, creds, ConnOptions{})

	_, err = conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	get := func(rt http.RoundTripper, authorization string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://eu.invalid/apis/x", http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Authorization", authorization)
		resp, err := rt.RoundTrip(req)
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
		return resp, err //nolint:bodyclose // closed above
	}
	for _, rt := range []http.RoundTripper{conn.CallerTransport(), conn.Config().Transport} {
		resp, err := get(rt, "Bearer alice") //nolint:bodyclose // closed by get
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		resp, err = get(rt, "Bearer garbage") //nolint:bodyclose // closed by get
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	}
	for _, none := range []string{"", "Bearer ", "Basic YTpi"} {
		_, err = get(conn.CallerTransport(), none) //nolint:bodyclose // the call fails without a response
		require.ErrorContains(t, err, "needs its own bearer token")
	}
	require.Equal(t, []string{"certificate:atoll", "token:alice", "token:alice"}, slices.Clone(c.usersSeen()))
}

// An earlier rejection does not shorten the wait for a rotation if the peer has accepted the credentials since.
func TestAwaitStartsAnewAfterAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "old")
		conn := newConn(t, c.credentials(t, "old"), ConnOptions{Await: 2 * time.Second})
		client := conn.Dynamic().Resource(widgets)
		c.setToken("old", false)
		_, err := client.Get(t.Context(), "w", metav1.GetOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "%v", err)
		c.setToken("old", true)
		_, err = client.Get(t.Context(), "w", metav1.GetOptions{})
		require.NoError(t, err)

		time.Sleep(time.Hour)
		c.setToken("old", false)
		c.setToken("new", true)
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(time.Second)
			require.NoError(t, conn.Rotate(t.Context(), c.credentials(t, "new")))
		})
		_, err = client.Get(t.Context(), "w", metav1.GetOptions{})
		wg.Wait()
		require.NoError(t, err)
	})
}

// Rotate distinguishes two functions from one source line, because they may add different credentials.
func TestRotateTellsFunctionsApart(t *testing.T) {
	c := newCluster("one", "a", "b")
	credentials := func(token string) Credentials {
		config := &rest.Config{Host: "https://one.test", Transport: c.door}
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return transport.NewBearerAuthRoundTripper(token, rt) })
		creds, err := FromConfig(config)
		require.NoError(t, err)
		return creds
	}
	a := credentials("a")
	conn := newConn(t, a, ConnOptions{})
	require.NoError(t, conn.Rotate(t.Context(), a))
	require.EqualValues(t, 1, conn.Health().Generation)
	require.NoError(t, conn.Rotate(t.Context(), credentials("b")))
	_, err := conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"token:b"}, c.usersSeen())
}
