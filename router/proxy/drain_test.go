// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A watch whose context ends because the gateway drains has a complete answer. Any other end, and any other request that
// does not end by itself, is cut short: its client must not take a part for the whole.
func TestDraining(t *testing.T) {
	for _, tt := range []struct {
		path  string
		cause error
		whole bool
	}{
		{euPath + "/api/v1/hang?watch=true", ErrDraining, true},
		{euPath + "/api/v1/hang?watch=true", errors.New("another cause"), false},
		{euPath + "/api/v1/namespaces/n/pods/p/log/hang?follow=true", ErrDraining, false},
		{euPath + "/api/v1/hang", ErrDraining, false},
	} {
		t.Run(tt.path+" "+tt.cause.Error(), func(t *testing.T) {
			s := newScene(t, Options{})
			begun := make(chan context.CancelCauseFunc, 1)
			front := http2Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx, cancel := context.WithCancelCause(r.Context())
				defer cancel(nil)
				begun <- cancel
				s.proxy.ServeHTTP(w, r.WithContext(ctx))
			}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+tt.path, http.NoBody)
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer alice")
			resp, err := front.Client().Do(req)
			require.NoError(t, err)
			defer func() { _ = resp.Body.Close() }()
			(<-begun)(tt.cause)
			_, err = io.Copy(io.Discard, resp.Body)
			require.Equal(t, tt.whole, err == nil, "%v", err)
			<-s.a.left
		})
	}
}
