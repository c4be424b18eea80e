// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Config returns a new configuration that reaches the server within the process. It uses no socket, so it works inside
// testing/synctest. Its content type is JSON, so that typed clientsets work, too. It has no rate limit.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host:          "http://" + s.opts.Name + ".invalid",
		Transport:     s.door,
		QPS:           -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	}
}

// door is the round tripper of Config. Everything except a watch is served on the caller's goroutine.
type door struct{ server *Server }

// RoundTrip serves r within the process. A watch is served in its own goroutine.
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if parse(r).Verb == "watch" {
		return d.stream(r)
	}
	w := &buffer{header: http.Header{}, code: http.StatusOK}
	if err := d.serve(w, r.Clone(ctx)); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return response(r, w.code, w.header, io.NopCloser(&w.body)), nil
}

// serve lets the server answer r. It returns ECONNREFUSED if the server did not accept the request: then the request
// has no effect. It returns ECONNRESET, or the error of r's context, if the server accepted the request and broke the
// connection: then the request may have had an effect.
func (d *door) serve(w http.ResponseWriter, r *http.Request) (err error) {
	c, err := d.server.receive(r)
	if err != nil {
		// client-go does not retry a read after ECONNREFUSED, but retries it after ECONNRESET.
		return fmt.Errorf("dial %s: %w", r.URL.Host, syscall.ECONNREFUSED)
	}
	defer func() {
		switch p := recover(); {
		case p == nil:
		case p == http.ErrAbortHandler: //nolint:errorlint // compared as net/http does
			if err = r.Context().Err(); err == nil {
				err = fmt.Errorf("read from %s: %w", r.URL.Host, syscall.ECONNRESET)
			}
		default:
			panic(p)
		}
	}()
	d.server.answer(w, c)
	return nil
}

// stream serves a watch in a goroutine. The goroutine ends when the client closes the body of the response.
func (d *door) stream(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	reader, writer := io.Pipe()
	w := &streamWriter{header: http.Header{}, pipe: writer, started: make(chan int, 1)}
	done := make(chan error, 1)
	go func() {
		err := d.serve(w, r.Clone(ctx))
		if err == nil {
			w.start(http.StatusOK)
		}
		_ = writer.CloseWithError(err)
		done <- err
	}()
	body := &streamBody{PipeReader: reader, cancel: cancel, done: done}
	select {
	case code := <-w.started:
		return response(r, code, w.sent, body), nil
	case err := <-done:
		done <- err
		select {
		case code := <-w.started:
			return response(r, code, w.sent, body), nil
		default:
			_ = body.Close()
			return nil, err
		}
	}
}

func response(r *http.Request, code int, header http.Header, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: -1, Request: r,
	}
}

// buffer holds a complete response.
type buffer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (b *buffer) Header() http.Header         { return b.header }
func (b *buffer) WriteHeader(code int)        { b.code = code }
func (b *buffer) Write(p []byte) (int, error) { return b.body.Write(p) }

// streamWriter is an http.ResponseWriter that writes into a pipe.
type streamWriter struct {
	header, sent http.Header
	pipe         *io.PipeWriter
	once         sync.Once
	started      chan int
}

func (w *streamWriter) Header() http.Header  { return w.header }
func (w *streamWriter) WriteHeader(code int) { w.start(code) }

func (w *streamWriter) Write(p []byte) (int, error) {
	w.start(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush does nothing: each write reaches the reader at once.
func (w *streamWriter) Flush() {}

func (w *streamWriter) start(code int) {
	w.once.Do(func() {
		w.sent = w.header.Clone()
		w.started <- code
	})
}

// streamBody is the body of the response to a watch. Its Close ends the watch and waits for the goroutine that serves
// it.
type streamBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	done   chan error
}

func (b *streamBody) Close() error {
	b.cancel()
	err := b.PipeReader.Close()
	e := <-b.done
	b.done <- e
	return err
}

// discard is an http.ResponseWriter that drops the response.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

func rewound(body []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }
