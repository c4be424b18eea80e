// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package boxtest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/atoll-dev/atoll/internal/boxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFaults checks, for each fault except TimeoutThen, how Go's HTTP/2 client reacts and which
// requests reach the server.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		fault   boxtest.Fault
		status  int  // of the answer; zero: the client gets an error
		applied int  // how often the server has applied the request when the client has its answer
		late    int  // how often the server applies the request after Release
		arrived int  // how often the client sent it
		once    bool // the client may also send it once, and get an error
	}{
		{fault: boxtest.DropRequest(), arrived: 1},
		{fault: boxtest.DropReply(), applied: 1, arrived: 1},
		{fault: boxtest.Cut(), arrived: 1},
		{fault: boxtest.CutReply(), applied: 1, arrived: 1},
		{fault: boxtest.Timeout(), status: 504, arrived: 1},
		{fault: boxtest.TimeoutLate(), status: 504, late: 1, arrived: 1},
		{fault: boxtest.GatewayTimeout(), status: 504, applied: 1, arrived: 1},
		{fault: boxtest.ErrorAfter(), status: 500, applied: 1, arrived: 1},
		{fault: boxtest.TooMany(), status: 429, arrived: 1},
		{fault: boxtest.GoAway(), status: 200, applied: 1, arrived: 1},
		{fault: boxtest.GoAwayLost(), applied: 1, arrived: 1},
		// The server declares the request unprocessed, so the client sends it again.
		{fault: boxtest.GoAwayBefore(), status: 200, applied: 1, arrived: 2},
		{fault: boxtest.Refuse(), status: 200, applied: 1, arrived: 2},
		// Clients with an older golang.org/x/net send the request again although the server may have processed it.
		{fault: boxtest.ProtocolError(), status: 200, applied: 2, arrived: 2, once: true},
	} {
		t.Run(tc.fault.String(), func(t *testing.T) {
			var applied atomic.Int32
			box, client := through(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					panic(http.ErrAbortHandler)
				}
				if r.Method == http.MethodPut {
					applied.Add(1)
				}
				_, _ = w.Write(append([]byte("you said "), body...))
			})
			status, _, err := client.send(t, http.MethodGet, "")
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)

			box.Arm(func(r boxtest.Request) bool { return r.Method == http.MethodPut }, 0, tc.fault)
			status, text, err := client.send(t, http.MethodPut, "hello")
			if tc.once && len(box.Requests()) == 1 {
				tc.status, tc.applied, tc.arrived = 0, 1, 1
			}
			require.Equal(t, tc.status == 0, err != nil, "%d %v", status, err)
			if err == nil {
				require.Equal(t, tc.status, status)
			}
			if status == http.StatusOK && err == nil {
				require.Equal(t, "you said hello", text)
			}
			require.EqualValues(t, tc.applied, applied.Load())
			requests := box.Requests()
			require.Len(t, requests, tc.arrived)
			require.Equal(t, tc.fault.String(), requests[0].Fault)
			box.Release()
			require.EqualValues(t, tc.applied+tc.late, applied.Load())

			status, _, err = client.send(t, http.MethodGet, "")
			require.NoError(t, err, "the box works on")
			require.Equal(t, http.StatusOK, status)
		})
	}
}

// A fault with alone set waits until all other requests on its connection are answered.
func TestAlone(t *testing.T) {
	waiting, goOn := make(chan struct{}), make(chan struct{})
	box, client := through(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			close(waiting)
			<-goOn
		}
	})
	box.Arm(func(r boxtest.Request) bool { return r.Method == http.MethodPut }, 0, boxtest.GoAwayBefore())
	errs := make(chan error, 2)
	go func() {
		_, _, err := client.send(t, http.MethodGet, "")
		errs <- err
	}()
	<-waiting
	go func() {
		_, _, err := client.send(t, http.MethodPut, "hello")
		errs <- err
	}()
	require.Eventually(t, func() bool { return len(box.Requests()) == 2 }, time.Minute, time.Millisecond)
	close(goOn)
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	passed := 0
	for _, r := range box.Requests() {
		passed += r.Passed
	}
	require.Equal(t, 2, passed)
}

// A request that its client cancelled does not count as open: without this rule a fault with alone
// set waits for ever, and its connection holds all later requests.
func TestAloneAfterACancelledRequest(t *testing.T) {
	waiting, goOn := make(chan struct{}), make(chan struct{})
	box, client := through(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			close(waiting)
			<-goOn
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, _, err := client.sendUntil(ctx, http.MethodPost, "")
		gone <- err
	}()
	<-waiting
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	close(goOn)

	box.Arm(func(r boxtest.Request) bool { return r.Method == http.MethodPut }, 0, boxtest.GoAwayBefore())
	status, _, err := client.send(t, http.MethodPut, "hello")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
}

// If the client of a request with alone set gives up while it waits for another request, later
// requests are not held.
func TestAloneIsCancelled(t *testing.T) {
	waiting, goOn := make(chan struct{}), make(chan struct{})
	box, client := through(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			close(waiting)
			<-goOn
		}
	})
	other := make(chan error, 1)
	go func() {
		_, _, err := client.send(t, http.MethodPost, "")
		other <- err
	}()
	<-waiting
	box.Arm(func(r boxtest.Request) bool { return r.Method == http.MethodPut }, 0, boxtest.GoAwayBefore())
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, _, err := client.sendUntil(ctx, http.MethodPut, "hello")
		gone <- err
	}()
	require.Eventually(t, func() bool { return len(box.Requests()) == 1 }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.Error(t, <-other, "the connection is reset")
	close(goOn)
	status, _, err := client.send(t, http.MethodGet, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
}

// through starts a server with a box before it, and returns the box and a client that connects
// through the box.
func through(t *testing.T, handler http.HandlerFunc) (*boxtest.Box, *caller) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["x"] = &clientcmdapi.Cluster{Server: server.URL}
	config.AuthInfos["x"] = &clientcmdapi.AuthInfo{}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	config.CurrentContext = "x"
	kubeconfig, err := clientcmd.Write(*config)
	require.NoError(t, err)
	box, err := boxtest.New(kubeconfig)
	require.NoError(t, err)
	t.Cleanup(box.Close)
	toBox, err := clientcmd.RESTConfigFromKubeConfig(box.Kubeconfig())
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(toBox)
	require.NoError(t, err)
	client.Timeout = time.Minute
	t.Cleanup(client.CloseIdleConnections)
	return box, &caller{client, toBox.Host}
}

// caller sends requests to one host.
type caller struct {
	*http.Client
	host string
}

func (c *caller) send(t *testing.T, method, body string) (int, string, error) {
	t.Helper()
	return c.sendUntil(t.Context(), method, body)
}

func (c *caller) sendUntil(ctx context.Context, method, body string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.host+"/thing", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	response, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}
