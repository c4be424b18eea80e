// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// The peer's command ends and refuses further input, while its last output is still under way. The client receives
// this output, whatever it sends in the meantime.
func TestOutputAfterTheInputIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := &ending{output: strings.NewReader("the last output"), released: make(chan struct{})}
		x := &exchange{
			proxy: &Proxy{regions: &clients{}, guards: intact(nil), buffers: &buffers{}}, upgrade: "websocket", transport: peer, event: &Event{},
			accepted: func(*http.Response) error { return nil },
		}
		mine, theirs := net.Pipe()
		var running sync.WaitGroup
		running.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/exec", nil)
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			x.run(hijacked{httptest.NewRecorder(), theirs}, r)
		})
		reader := bufio.NewReader(mine)
		answer, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close()) // which is empty
		require.Equal(t, http.StatusSwitchingProtocols, answer.StatusCode)
		_, err = io.WriteString(mine, "input for a command that has ended")
		require.NoError(t, err)
		synctest.Wait() // the peer has refused it
		require.Equal(t, 1, peer.writes)
		close(peer.released)
		output, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.Equal(t, "the last output", string(output))
		running.Wait()
	})
}

// ending is a peer that refuses all input. Its output cannot be read before released is closed, or after Close.
type ending struct {
	output   io.Reader
	released chan struct{}

	mu     sync.Mutex
	writes int
	closed bool
}

func (e *ending) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: e, Request: r}, nil
}

func (e *ending) Write([]byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writes++
	return 0, errors.New("broken pipe")
}

func (e *ending) Read(p []byte) (int, error) {
	<-e.released
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return 0, net.ErrClosed
	}
	return e.output.Read(p)
}

func (e *ending) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

// hijacked is a ResponseWriter whose connection is conn.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}
