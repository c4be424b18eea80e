// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package latetest

import (
	"io"
	"net/http"
	"time"
)

// Watches returns a wrapper for transports that delays each read from a watch by the duration by.
// Stopping a watch may wait for one delayed read.
func Watches(by time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return late{next, by} }
}

type late struct {
	http.RoundTripper
	by time.Duration
}

// RoundTrip delays the body of a watch.
func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") == "true" {
		response.Body = body{response.Body, l.by}
	}
	return response, err
}

type body struct {
	io.ReadCloser
	by time.Duration
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	time.Sleep(b.by)
	return n, err
}
