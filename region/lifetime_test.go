// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// A change of one peer's configuration does not change another peer's, although slices and pointers could be shared.
func TestConfigurationsAreNotShared(t *testing.T) {
	common := &rest.Config{
		Host: "https://one.test",
		ExecProvider: &clientcmdapi.ExecConfig{
			Command: "/opt/login", Args: make([]string, 1, 8), APIVersion: "client.authentication.k8s.io/v1",
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		},
	}
	creds, err := FromConfig(common)
	require.NoError(t, err)
	conn := newConn(t, creds, ConnOptions{})
	// Derive the next peer's configuration from the same one.
	common.ExecProvider.Args = append(common.ExecProvider.Args, "--cluster=two")
	common.ExecProvider.Args[0] = "two"
	first, err := conn.StreamConfig()
	require.NoError(t, err)
	require.Equal(t, []string{""}, first.ExecProvider.Args)
	// Change the configuration that a Conn returned.
	first.ExecProvider.Args[0] = "three"
	first.ExecProvider.Args = append(first.ExecProvider.Args, "--cluster=three")
	first.ExecProvider.Env = append(first.ExecProvider.Env, clientcmdapi.ExecEnvVar{Name: "A"})
	first.BearerToken = "three"
	second, err := conn.StreamConfig()
	require.NoError(t, err)
	require.Equal(t, []string{""}, second.ExecProvider.Args)
	require.Empty(t, second.ExecProvider.Env)
	require.Empty(t, second.BearerToken)

	one, two := conn.Config(), conn.Config()
	one.Impersonate.Groups = append(one.Impersonate.Groups, "dev")
	one.Transport = http.DefaultTransport
	require.Empty(t, two.Impersonate.Groups)
	require.NotEqual(t, one.Transport, conn.Config().Transport)
}

// A kubeconfig that is read again with the same content is equal, although its configuration has a Proxy function. A
// kubeconfig with another proxy or argument is not equal.
func TestKubeconfigsThatAreReadAgain(t *testing.T) {
	parse := func(proxy string, args ...string) Credentials {
		creds, err := ParseKubeconfig(kubeconfig(t, "https://10.0.0.1", nil, func(k *clientcmdv1.Config) {
			k.Clusters[0].Cluster.ProxyURL = proxy
			k.AuthInfos[0].AuthInfo = clientcmdv1.AuthInfo{Exec: &clientcmdv1.ExecConfig{
				Command: "/opt/login", Args: args, APIVersion: "client.authentication.k8s.io/v1",
			}}
		}), Trust{Exec: []string{"/opt/login"}, Proxy: func(*url.URL) error { return nil }})
		require.NoError(t, err)
		return creds
	}
	creds := parse("http://proxy:3128", "a")
	conn := newConn(t, creds, ConnOptions{})
	for range 3 {
		require.NoError(t, conn.Rotate(t.Context(), parse("http://proxy:3128", "a")))
	}
	require.EqualValues(t, 1, conn.Health().Generation)
	require.False(t, creds.equal(parse("http://proxy:3129", "a")))
	require.False(t, creds.equal(parse("http://proxy:3128", "b")))
	require.False(t, creds.equal(parse("http://proxy:3128", "a", "")))
}

// A peer leaves and joins again under its name. The delayed end of the old connection does not affect the new one.
func TestTheEndOfAPeerThatLeftIsNotTheNextOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a")
		c.answer = func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		src := newScripted()
		r := startRing(t, src)
		peer := Peer{Name: "eu", Credentials: c.credentials(t, "a")}
		src.publish(t, peer)
		old := connOf(t, r, "eu")
		before, err := old.Dynamic().Resource(widgets).Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		src.publish(t)
		src.publish(t, peer)
		conn := connOf(t, r, "eu")
		require.NotSame(t, old, conn)
		after, err := conn.Dynamic().Resource(widgets).Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)

		began := time.Now()
		for range before.ResultChan() {
		}
		require.Equal(t, defaultDrain, time.Since(began), "what ran when it left is drained")
		time.Sleep(defaultDrain)
		synctest.Wait()
		select {
		case e, open := <-after.ResultChan():
			require.Fail(t, "the watch at the peer that came back ended", "%v %v", e, open)
		default:
		}
		require.Same(t, conn, connOf(t, r, "eu"))
		require.Equal(t, Healthy, conn.Health().State)
		r.mu.Lock()
		require.Len(t, r.clusters, 1)
		require.Same(t, conn, r.clusters["one"].conn, "the cluster is known as the present one's")
		r.mu.Unlock()
		after.Stop()
	})
}

// New credentials outlive the context of the Rotate call that brought them. When one peer leaves, the engagement of
// another peer continues.
func TestLifetimesAreTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newCluster("one", "a", "b"), newCluster("two", "a")
		conn := newConn(t, one.credentials(t, "a"), ConnOptions{})
		request, done := context.WithCancel(t.Context())
		require.NoError(t, conn.Rotate(request, one.credentials(t, "b")))
		done()
		_, err := conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"token:b"}, one.usersSeen())

		src := newScripted()
		r := startRing(t, src)
		ctx, cancel := context.WithCancel(t.Context())
		contexts := make(chan context.Context, 2)
		ended := make(chan error, 1)
		go func() {
			ended <- Engage(ctx, r, func(ctx context.Context, _ *Conn) error {
				contexts <- ctx
				<-ctx.Done()
				return nil
			})
		}()
		eu, us := Peer{Name: "eu", Credentials: one.credentials(t, "a")}, Peer{Name: "us", Credentials: two.credentials(t, "a")}
		src.publish(t, eu)
		first := <-contexts
		src.publish(t, eu, us)
		second := <-contexts
		src.publish(t, us)
		require.Error(t, first.Err(), "the peer has left")
		require.NoError(t, second.Err(), "the peer that joined later is still there")
		require.Equal(t, Healthy, connOf(t, r, "us").Health().State)
		cancel()
		require.NoError(t, <-ended)
	})
}

// idleTimeout is how long client-go keeps an idle connection, and the objects that an HTTP/2 connection refers to.
const idleTimeout = 90 * time.Second

// After many rotations, only the sockets and transports of the last credentials exist. After the peer has left, no
// socket is open.
func TestNothingIsLeftOfWhatWasReplaced(t *testing.T) {
	c := newCluster("one")
	a := newAuthority(t)
	server := a.serve(t, c)
	var open atomic.Int64
	credentials := func(i int) Credentials {
		_, _, cert, key := a.sign(t, &x509.Certificate{
			Subject: pkix.Name{CommonName: fmt.Sprintf("atoll-%d", i)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
		creds, err := FromConfig(&rest.Config{
			Host: server, TLSClientConfig: rest.TLSClientConfig{CAData: a.pem, CertData: cert, KeyData: key},
			Dial: counting(&open),
		})
		require.NoError(t, err)
		return creds
	}
	conn, err := NewConn(Peer{Name: "eu", Credentials: credentials(0)}, ConnOptions{Drain: 100 * time.Millisecond})
	require.NoError(t, err)
	var replaced []weak.Pointer[generation]
	var unused []weak.Pointer[http.Transport]
	for i := range 30 {
		replaced = append(replaced, weak.Make(conn.current.Load()))
		require.NoError(t, conn.Rotate(t.Context(), credentials(i+1)))
		_, err := conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
		require.NoError(t, err)
		g, err := newGeneration(0, credentials(i+1000))
		require.NoError(t, err)
		unused = append(unused, weak.Make(beneath(t, g.own)))
	}
	within := func(condition func() bool, what string) {
		t.Helper()
		require.Eventually(t, condition, idleTimeout+30*time.Second, 10*time.Millisecond, what)
	}
	within(func() bool { return open.Load() == 1 }, "one connection is in use")
	within(func() bool { return alive(replaced) == 0 && alive(unused) == 0 }, "the replaced credentials are freed")
	within(func() bool {
		conn.Close() // again: a request that has just ended may still be on its connection
		return open.Load() == 0
	}, "the peer has left")
}

// alive returns how many of the pointers still point to an object.
func alive[T any](pointers []weak.Pointer[T]) (n int) {
	runtime.GC()
	for _, p := range pointers {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

// counting returns a dial func that counts open connections.
func counting(open *atomic.Int64) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &counted{Conn: conn, open: open}, nil
	}
}

type counted struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// beneath returns the http.Transport that rt wraps.
func beneath(t *testing.T, rt http.RoundTripper) *http.Transport {
	t.Helper()
	for {
		if found, ok := rt.(*http.Transport); ok {
			return found
		}
		wrapper, ok := rt.(utilnet.RoundTripperWrapper)
		require.True(t, ok, "%T", rt)
		rt = wrapper.WrappedRoundTripper()
	}
}

// A response without end is not read beyond the limit.
func TestAnswersOfPeersAreBounded(t *testing.T) {
	var sent atomic.Int64
	endless := rest.Config{Host: "https://one.test", Transport: &inProcess{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for sent.Load() < 64*maxAnswer && r.Context().Err() == nil {
			n, err := w.Write(make([]byte, 4096))
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})}}
	creds, err := FromConfig(&endless)
	require.NoError(t, err)
	conn := newConn(t, creds, ConnOptions{})
	_, err = conn.UID(t.Context())
	require.Error(t, err)
	require.LessOrEqual(t, sent.Load(), int64(maxAnswer+4096))
}
