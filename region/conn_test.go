// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

var _ API = (*Conn)(nil)

func TestNewConnRefuses(t *testing.T) {
	_, err := NewConn(Peer{Name: "eu"}, ConnOptions{})
	require.EqualError(t, err, "peer eu: connect: has no credentials; make them with ParseKubeconfig or FromConfig")
	_, err = NewConn(Peer{Name: "EU"}, ConnOptions{})
	require.ErrorContains(t, err, `peer "EU"`)
	_, err = FromConfig(nil)
	require.Error(t, err)
	_, err = FromConfig(&rest.Config{})
	require.ErrorContains(t, err, "Host")
}

// The address of a peer may have a path. Clients need not know the address or the path.
func TestRequestsGoToThePeersAddress(t *testing.T) {
	var asked string
	creds, err := FromConfig(&rest.Config{Host: "https://api.example.com:6443/clusters/a%2Fb/", Transport: roundTripper(
		func(req *http.Request) (*http.Response, error) {
			asked = req.URL.String()
			require.Empty(t, req.Host)
			return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Header: http.Header{}}, nil
		})})
	require.NoError(t, err)
	conn := newConn(t, creds, ConnOptions{})
	_, err = conn.Dynamic().Resource(widgets).Namespace("default").Get(t.Context(), "w", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Equal(t, "https://api.example.com:6443/clusters/a%2Fb/apis/example.com/v1/namespaces/default/widgets/w", asked)
	require.Equal(t, "https://eu.invalid", conn.Config().Host)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestRedirectIsRefused(t *testing.T) {
	c := newCluster("one", "a")
	c.answer = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.example.com/", http.StatusTemporaryRedirect)
	}
	_, err := newConn(t, c.credentials(t, "a"), ConnOptions{}).Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
	require.ErrorContains(t, err, "redirect (307), which is not followed")
	require.ErrorIs(t, err, ErrUnavailable)
}

func TestErrorsOfSilentPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a")
		c.answer = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		client := newConn(t, c.credentials(t, "a"), ConnOptions{}).Dynamic().Resource(widgets)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client.Get(ctx, "w", metav1.GetOptions{})
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		failed, ok := errors.AsType[*Error](err)
		require.True(t, ok)
		require.Equal(t, PeerName("eu"), failed.Peer)
		timeout, ok := errors.AsType[net.Error](err)
		require.True(t, ok && timeout.Timeout())

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = client.Get(ctx, "w", metav1.GetOptions{})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, ErrUnavailable)
	})
}

func TestAttempt(t *testing.T) {
	t.Run("answered", func(t *testing.T) {
		c := newCluster("one", "a")
		c.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		conn := newConn(t, c.credentials(t, "a"), ConnOptions{})
		var a Attempt
		_, err := conn.Dynamic().Resource(widgets).Create(WithAttempt(t.Context(), &a), widget("w"), metav1.CreateOptions{})
		require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
		require.True(t, a.Sent())
		require.Equal(t, http.StatusTooManyRequests, a.Status())
		require.Equal(t, 3*time.Second, a.RetryAfter())
		require.Equal(t, 1, c.writes, "client-go repeats what carries Retry-After")
	})
	t.Run("nobody listens", func(t *testing.T) {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		conn := newConn(t, credentialsFor(t, "https://"+listener.Addr().String(), nil, "a"), ConnOptions{})
		var a Attempt
		_, err = conn.Dynamic().Resource(widgets).Create(WithAttempt(t.Context(), &a), widget("w"), metav1.CreateOptions{})
		require.ErrorIs(t, err, ErrUnavailable)
		require.False(t, a.Sent())
		require.Zero(t, a.Status())
	})
	t.Run("no answer", func(t *testing.T) {
		c := newCluster("one", "a")
		received := make(chan struct{})
		c.answer = func(_ http.ResponseWriter, r *http.Request) {
			close(received)
			<-r.Context().Done()
		}
		authority := newAuthority(t)
		conn := newConn(t, credentialsFor(t, authority.serve(t, c), authority.pem, "a"), ConnOptions{})
		var a Attempt
		ctx, cancel := context.WithCancel(WithAttempt(t.Context(), &a))
		go func() {
			<-received
			cancel()
		}()
		_, err := conn.Dynamic().Resource(widgets).Create(ctx, widget("w"), metav1.CreateOptions{})
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, a.Sent())
		require.Zero(t, a.Status())
	})
	t.Run("transport that does not tell", func(t *testing.T) {
		creds, err := FromConfig(&rest.Config{Host: "https://a", Transport: roundTripper(
			func(*http.Request) (*http.Response, error) { return nil, errors.New("lost") })})
		require.NoError(t, err)
		var a Attempt
		require.False(t, a.Sent())
		_, err = newConn(t, creds, ConnOptions{}).Dynamic().Resource(widgets).Get(WithAttempt(t.Context(), &a), "w", metav1.GetOptions{})
		require.Error(t, err)
		require.True(t, a.Sent())
	})
	t.Run("context ended before", func(t *testing.T) {
		var a Attempt
		ctx, cancel := context.WithCancel(WithAttempt(t.Context(), &a))
		cancel()
		_, err := newConn(t, newCluster("one", "a").credentials(t, "a"), ConnOptions{}).Dynamic().Resource(widgets).Get(ctx, "w", metav1.GetOptions{})
		require.Error(t, err)
		require.False(t, a.Sent())
	})
}

func TestObserverSeesEachRequest(t *testing.T) {
	type key struct{}
	var statuses []int
	c := newCluster("one", "a")
	c.answer = func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"` + r.Context().Value(key{}).(string) + `"}}`))
	}
	conn := newConn(t, c.credentials(t, "a"), ConnOptions{Observer: &Observer{
		Call: func(ctx context.Context, e CallEvent) (context.Context, func(int, error)) {
			require.Equal(t, CallEvent{Peer: "eu", Method: "GET", Generation: 1}, e)
			return context.WithValue(ctx, key{}, "traced"), func(status int, _ error) { statuses = append(statuses, status) }
		},
	}})
	got, err := conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "traced", got.GetName())
	require.Equal(t, []int{200}, statuses)
}

func TestFixed(t *testing.T) {
	k := Key{Provider: "loodse", Name: "eu"}
	creds := newCluster("one", "a").credentials(t, "a")
	eu, err := NewConn(Peer{Name: "eu", Regions: []Key{k}, Credentials: creds}, ConnOptions{})
	require.NoError(t, err)
	us, err := NewConn(Peer{Name: "us", Regions: []Key{k}, Credentials: creds}, ConnOptions{})
	require.NoError(t, err)
	d := Fixed(eu)
	got, err := d.Conn("eu")
	require.NoError(t, err)
	require.Same(t, eu, got)
	_, err = d.Conn("us")
	require.ErrorIs(t, err, ErrUnknownPeer)
	p, ok := d.Snapshot().Locate(k)
	require.True(t, ok)
	require.Equal(t, PeerName("eu"), p.Name)
	_, err = Fixed(eu, us).Conn("eu")
	require.ErrorContains(t, err, `served by peer "eu" and by peer "us"`)
	_, err = eu.StreamConfig()
	require.NoError(t, err)
	eu.retire()
	_, err = eu.StreamConfig()
	require.ErrorIs(t, err, ErrUnknownPeer)
}
