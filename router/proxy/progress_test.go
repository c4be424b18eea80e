// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// actor is a peer whose behavior the last segment of the path selects.
type actor struct{}

func (actor) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, ContentLength: -1}
	switch path.Base(req.URL.Path) {
	case "silent":
		<-req.Context().Done()
		return nil, req.Context().Err()
	case "halfway":
		out, in := io.Pipe()
		go func() {
			_, _ = io.WriteString(in, "half of it")
			<-req.Context().Done()
			_ = in.CloseWithError(req.Context().Err())
		}()
		resp.Body = out
	case "drip":
		out, in := io.Pipe()
		go func() {
			for range 10 {
				time.Sleep(50 * time.Second)
				_, _ = io.WriteString(in, "drop")
			}
			_ = in.Close()
		}()
		resp.Body = out
	case "huge":
		resp.ContentLength, resp.Body = 64<<20, io.NopCloser(io.LimitReader(endless{}, 64<<20))
	case "early":
		// The peer answers without reading the body; its transport continues to read, as net/http's transport does.
		go func() {
			_, _ = io.Copy(io.Discard, req.Body)
			_ = req.Body.Close()
		}()
		resp.StatusCode, resp.Body = http.StatusForbidden, io.NopCloser(strings.NewReader("no"))
	default:
		return slowPeer{}.RoundTrip(req)
	}
	return resp, nil
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// talk sends the head of a request as alice, and returns the connection.
func (i *island) talk(t *testing.T, method, target string, lines ...string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := i.transport.DialContext(t.Context(), "", "")
	require.NoError(t, err)
	head := append([]string{method + " /regions/attacked.loodse" + target + " HTTP/1.1", "Host: gateway", alice}, lines...)
	_, err = io.WriteString(conn, strings.Join(head, "\r\n")+"\r\n\r\n")
	require.NoError(t, err)
	return conn, bufio.NewReader(conn)
}

// inBubble runs a test on an island, and checks that no place in the gates stays taken.
func inBubble(t *testing.T, test func(*testing.T, *island)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		i := newIsland(t, actor{}, Limits{Body: 20 * time.Second, Answer: time.Minute, Read: 40 * time.Second})
		defer i.close()
		test(t, i)
		synctest.Wait()
		requireEmpty(t, i.proxy.requests)
		requireEmpty(t, i.proxy.streams)
	})
}

// A request whose body stalls ends after Limits.Body. A request whose body moves stays open, however slow it is.
func TestBodiesThatStall(t *testing.T) {
	for _, encoding := range []string{"Content-Length: 100", "Transfer-Encoding: chunked"} {
		for _, sent := range []string{"", "5\r\nhello\r\n"} {
			inBubble(t, func(t *testing.T, i *island) {
				began := time.Now()
				conn, in := i.talk(t, "POST", "/api/v1/pods", encoding)
				defer func() { _ = conn.Close() }()
				_, err := io.WriteString(conn, sent)
				require.NoError(t, err)
				resp, err := http.ReadResponse(in, nil)
				require.NoError(t, err)
				require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
				require.Equal(t, 20*time.Second, time.Since(began))
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Contains(t, string(body), `"reason":"Timeout"`)
				require.Contains(t, string(body), "the request's body did not arrive in time")
			})
		}
	}
	inBubble(t, func(t *testing.T, i *island) {
		conn, in := i.talk(t, "POST", "/api/v1/pods", "Content-Length: 100")
		defer func() { _ = conn.Close() }()
		for range 100 {
			time.Sleep(19 * time.Second)
			_, err := io.WriteString(conn, "x")
			require.NoError(t, err)
		}
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	})
}

// The peer answers a request before the whole body was sent. The client gets the whole answer at once although it sends
// no body. From then on the request takes no place, even while the client keeps the connection open.
func TestAnEarlyAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, i *island) {
		conn, in := i.talk(t, "POST", "/api/v1/early", "Content-Length: 100")
		defer func() { _ = conn.Close() }()
		began := time.Now()
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusForbidden, resp.StatusCode)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "no", string(body))
		require.Zero(t, time.Since(began))
		synctest.Wait()
		requireEmpty(t, i.proxy.requests) // the connection is still open
		requireEmpty(t, i.proxy.streams)
	})
}

// The proxy does not read the body of a request that it refuses, or that is about all regions. Such a body delays the
// answer by at most Limits.Body, since net/http waits for the body before it answers.
func TestBodiesThatAreNotRead(t *testing.T) {
	for _, tt := range []struct {
		target string
		code   int
	}{{"/regions/nowhere.loodse/api/v1/pods", http.StatusNotFound}, {"/regions/*/api/v1/pods", http.StatusOK}} {
		inBubble(t, func(t *testing.T, i *island) {
			began := time.Now()
			conn, err := i.transport.DialContext(t.Context(), "", "")
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, err = io.WriteString(conn, "GET "+tt.target+" HTTP/1.1\r\nHost: gateway\r\n"+alice+"\r\nContent-Length: 100\r\n\r\n")
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, tt.code, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
			require.LessOrEqual(t, time.Since(began), 20*time.Second)
		})
	}
}

// A request ends if the peer is silent for Limits.Answer, before or during its answer, but not if the peer is slow.
func TestPeersThatStall(t *testing.T) {
	for _, target := range []string{"/api/v1/silent", "/api/v1/silent?watch=true"} {
		inBubble(t, func(t *testing.T, i *island) {
			began := time.Now()
			require.Equal(t, http.StatusGatewayTimeout, i.do(t.Context(), "alice", "/regions/attacked.loodse"+target, nil))
			require.Equal(t, time.Minute, time.Since(began))
		})
	}
	inBubble(t, func(t *testing.T, i *island) { // an unsent body delays the answer by at most Limits.Body
		began := time.Now()
		conn, in := i.talk(t, "POST", "/api/v1/silent", "Content-Length: 100")
		defer func() { _ = conn.Close() }()
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusGatewayTimeout, resp.StatusCode)
		require.LessOrEqual(t, time.Since(began), time.Minute+20*time.Second)
	})
	inBubble(t, func(t *testing.T, i *island) {
		began := time.Now()
		require.Zero(t, i.do(t.Context(), "alice", "/regions/attacked.loodse/api/v1/halfway", nil), "an answer that is cut short is an error")
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, http.StatusOK, i.do(t.Context(), "alice", "/regions/attacked.loodse/api/v1/drip", nil))
		// A long-running request has no limit once its answer has begun.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began = time.Now()
		require.Zero(t, i.do(ctx, "alice", "/regions/attacked.loodse/api/v1/halfway?watch=true", nil))
		require.Equal(t, time.Hour, time.Since(began))
	})
}

// A client that does not read its answer for Limits.Read is disconnected. A client that reads slowly stays
// connected.
func TestClientsThatDoNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, i *island) {
		conn, in := i.talk(t, "GET", "/api/v1/huge")
		defer func() { _ = conn.Close() }()
		resp, err := http.ReadResponse(in, nil) //nolint:bodyclose // the connection of the response is closed
		require.NoError(t, err)
		for range 100 {
			_, err = io.ReadFull(resp.Body, make([]byte, 100<<10))
			require.NoError(t, err)
			time.Sleep(30 * time.Second)
		}
		time.Sleep(41 * time.Second)
		synctest.Wait()
		requireEmpty(t, i.proxy.requests)
		_, err = io.Copy(io.Discard, resp.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

// Limits.Body and Limits.Read also apply over HTTP/2, where deadlines belong to a stream, and over real connections.
func TestStallsOverHTTP2(t *testing.T) {
	s := newScene(t, Options{Limits: Limits{Body: 50 * time.Millisecond, Read: 50 * time.Millisecond}})
	front := http2Server(t, s.proxy)
	ask := func(method, target string, body io.Reader) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), method, front.URL+euPath+target, body)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer alice")
		return front.Client().Do(req)
	}
	body, in := io.Pipe()
	defer func() { _ = in.Close() }()
	resp, err := ask(http.MethodPost, "/api/v1/pods", body)
	require.NoError(t, err)
	require.Equal(t, 2, resp.ProtoMajor)
	require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
	require.NoError(t, resp.Body.Close())

	resp, err = ask(http.MethodGet, "/huge", nil)
	require.NoError(t, err)
	require.NoError(t, eventually(t.Context(), func() error {
		s.proxy.requests.mu.Lock()
		defer s.proxy.requests.mu.Unlock()
		if n := s.proxy.requests.busy.all; n > 0 {
			return fmt.Errorf("%d requests hold a place", n)
		}
		return nil
	}))
	_, err = io.Copy(io.Discard, resp.Body)
	require.Error(t, err, "it was cut off")
	require.NoError(t, resp.Body.Close())
}
