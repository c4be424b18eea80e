// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// Config returns a configuration for all regions together, whose requests h, usually an *apiserver.Handler, serves in
// this process. Set BearerToken, or what else h authenticates callers by. A client, an informer or a cluster.Cluster of
// the Config has the objects of all regions, named NAME@REGION where several regions may have the name. It works for
// everything except upgraded streams.
//
// A cache of the Config syncs when every region has answered once, because a list without a region would look as if its
// objects were deleted. A controller that must start while a region is unreachable uses the caches of PartialStart, the
// clusters of Clusters, or package adapters/multicluster.
func Config(h http.Handler) *rest.Config {
	return &rest.Config{Host: "http://all-regions.invalid/regions/*", Transport: transport{h}, QPS: -1}
}

// transport is a RoundTripper that calls a Handler in this process.
type transport struct{ handler http.Handler }

// RoundTrip calls the handler in a goroutine that ends when the body of the response is closed or the request's context
// ends. The handler must observe its context, as the handlers of net/http must.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	body, write := io.Pipe()
	w := &response{request: r, begun: make(chan struct{}), header: http.Header{}, write: write}
	w.response.Body = closer{body, cancel}
	served := r.Clone(ctx)
	served.URL.Scheme, served.URL.Host = "", "" // as a server sees it
	served.RequestURI, served.RemoteAddr = served.URL.RequestURI(), "in-process"
	if served.Body == nil {
		served.Body = http.NoBody
	}
	stop := context.AfterFunc(ctx, func() { _ = write.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer stop()
		defer func() { _ = served.Body.Close() }()
		err := serve(t.handler, w, served)
		if ctx.Err() != nil {
			err = context.Cause(ctx) // the reader must not take the response for a complete one
		}
		w.end(err)
	}()
	select {
	case <-w.begun:
		return &w.response, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve calls the handler, and returns its panic as an error. http.ErrAbortHandler ends a response that is not complete.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); {
		case p == nil:
		case p == any(http.ErrAbortHandler):
			err = io.ErrUnexpectedEOF
		default:
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

var errClosed = errors.New("the body of the response was closed")

// closer is the body of a response. Close ends the handler.
type closer struct {
	*io.PipeReader

	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (c closer) Close() error {
	c.cancel(errClosed)
	return c.PipeReader.Close()
}

// response is the http.ResponseWriter of one request.
type response struct {
	request  *http.Request
	header   http.Header
	write    *io.PipeWriter
	once     sync.Once
	begun    chan struct{} // closed when response is complete but for its body
	response http.Response
}

var _ http.Flusher = (*response)(nil)

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(code int) {
	if code < http.StatusOK && code != http.StatusSwitchingProtocols {
		return // such as 103: the client needs none of them
	}
	w.once.Do(func() {
		w.response = http.Response{
			Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: w.header.Clone(), Body: w.response.Body, ContentLength: -1, Request: w.request,
		}
		close(w.begun)
	})
}

// Write implements io.Writer.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.write.Write(p)
}

// Flush implements http.Flusher. A pipe holds nothing back.
func (w *response) Flush() { w.WriteHeader(http.StatusOK) }

// end ends the response.
func (w *response) end(err error) {
	w.WriteHeader(http.StatusOK)
	_ = w.write.CloseWithError(err) // nil is io.EOF
}
