// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package boxtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync"
)

// connKey is the context key of a request's connection.
type connKey struct{}

// listen is a listener that accepts TLS connections and returns them decrypted.
type listen struct {
	net.Listener
	config *tls.Config
}

func (l *listen) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	secure := tls.Server(raw, l.config)
	return &conn{Conn: secure, tls: secure, raw: raw, open: map[uint32]bool{}, changed: make(chan struct{}), closed: make(chan struct{})}, nil
}

// Types of HTTP/2 frames, a flag of frames, and error codes: RFC 9113.
const (
	frameData    = 0x0
	frameHeaders = 0x1
	frameReset   = 0x3
	frameGoAway  = 0x7
	endStream    = 0x1

	protocolError = 0x1
	refusedStream = 0x7
)

const prefaceSize = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// conn is a connection whose HTTP/2 frames are inspected.
type conn struct {
	net.Conn // TLS, hidden from the server: see New
	tls      *tls.Conn
	raw      net.Conn

	writing sync.Mutex // one Write after another
	out     frames

	mu      sync.Mutex
	greeted bool // the first bytes were read
	http2   bool // the client negotiated HTTP/2
	preface int  // bytes of the client's preface still to read
	in      frames
	open    map[uint32]bool // streams that have begun and not ended
	highest uint32          // highest stream number so far
	held    int             // requests that wait unprocessed
	leaving bool            // every further request is held
	code    byte            // replaces the error code of the next reset, unless zero
	changed chan struct{}   // closed and replaced when open or held changes
	closed  chan struct{}
	once    sync.Once
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	read := p[:n]
	if n > 0 && !c.greeted {
		c.greeted = true
		if c.http2 = c.tls.ConnectionState().NegotiatedProtocol == "h2"; c.http2 {
			c.preface = prefaceSize
		}
	}
	if !c.http2 {
		return n, err
	}
	skip := min(c.preface, n)
	c.preface -= skip
	read = read[skip:]
	c.in.feed(read, func(f frame, _ []byte) {
		switch {
		case f.kind == frameHeaders && f.stream > c.highest:
			c.highest = f.stream
			c.open[f.stream] = true
			c.change()
		case f.kind == frameReset: // the server sends nothing more on this stream
			delete(c.open, f.stream)
			c.change()
		}
	})
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	if !c.http2 {
		c.mu.Unlock()
		return c.Conn.Write(p)
	}
	p = bytes.Clone(p)
	c.out.feed(p, func(f frame, payload []byte) {
		switch {
		case f.kind == frameReset:
			if c.code != 0 && len(payload) == 4 {
				payload[3], c.code = c.code, 0
			}
		case (f.kind == frameData || f.kind == frameHeaders) && f.flags&endStream != 0:
		default:
			return
		}
		delete(c.open, f.stream)
		c.change()
	})
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *conn) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Close closes the connection.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// abort resets the TCP connection.
func (c *conn) abort() {
	if tcp, ok := c.raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.raw.Close()
	c.once.Do(func() { close(c.closed) })
}

// enter reports whether a request may proceed. A request with alone set may proceed, but from then
// on the connection holds all further requests.
func (c *conn) enter(alone bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || alone {
		c.leaving = true
		c.held++
		c.change()
		return alone
	}
	return true
}

// hold blocks until the connection has closed or the client of the request gives up, which ends ctx.
func (c *conn) hold(ctx context.Context) {
	select {
	case <-c.closed:
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held--
		c.change()
	}
}

// reset replaces the error code of the next RST_STREAM.
func (c *conn) reset(code byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code = code
}

// goAwayUnseen waits until the connection holds the requests of all open streams. It then sends a
// GOAWAY that declares these requests unprocessed. If the client gives up, which ends ctx, the
// connection is reset instead, because it would hold all later requests.
func (c *conn) goAwayUnseen(ctx context.Context) {
	for {
		c.mu.Lock()
		alone, changed := len(c.open) == c.held, c.changed
		last := c.highest
		for stream := range c.open {
			last = min(last, stream-1)
		}
		c.mu.Unlock()
		if ctx.Err() != nil {
			c.abort()
			return
		}
		if alone {
			c.goAway(last)
			c.hold(ctx)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// goAway sends a GOAWAY with the last processed stream. It waits for a concurrent Write, and sends
// nothing if a frame is then incomplete.
func (c *conn) goAway(last uint32) {
	f := []byte{0, 0, 8, frameGoAway, 0, 0, 0, 0, 0}
	f = binary.BigEndian.AppendUint32(f, last)
	f = binary.BigEndian.AppendUint32(f, 0) // NO_ERROR
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	whole := c.out.between()
	c.mu.Unlock()
	if whole {
		_, _ = c.Conn.Write(f)
	}
}

// frame is the header of an HTTP/2 frame.
type frame struct {
	kind, flags byte
	stream      uint32
}

// frames parses the frames in one direction of a connection.
type frames struct {
	head []byte // header of the next frame, as far as it was read
	left int    // remaining payload bytes of the current frame
}

// between reports whether the last frame is complete.
func (f *frames) between() bool { return len(f.head) == 0 && f.left == 0 }

// feed parses p, the next bytes of the connection. It calls see for each frame whose header is
// complete, with the part of the payload that p holds.
func (f *frames) feed(p []byte, see func(frame, []byte)) {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, len(p))
			f.left -= n
			p = p[n:]
			continue
		}
		n := min(9-len(f.head), len(p))
		f.head = append(f.head, p[:n]...)
		p = p[n:]
		if len(f.head) < 9 {
			return
		}
		h := f.head
		f.head = nil
		f.left = int(h[0])<<16 | int(h[1])<<8 | int(h[2])
		see(frame{kind: h[3], flags: h[4], stream: binary.BigEndian.Uint32(h[5:9]) &^ (1 << 31)}, p[:min(f.left, len(p))])
	}
}
