// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package stilltest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Watch returns the body of the response to the watch r. The body ends after the timeoutSeconds of
// r, when the context of r ends, or abruptly when death is closed. death may be nil.
func Watch(r *http.Request, death <-chan struct{}) (io.ReadCloser, error) {
	seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		return nil, fmt.Errorf("timeoutSeconds of a watch: %w", err)
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	return &watch{ctx: r.Context(), death: death, end: end, closed: make(chan struct{})}, nil
}

type watch struct {
	ctx    context.Context //nolint:containedctx // it is that of the request
	end    time.Time
	death  <-chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (w *watch) Read([]byte) (int, error) {
	timer := time.NewTimer(time.Until(w.end))
	defer timer.Stop()
	select {
	case <-timer.C:
		return 0, io.EOF
	case <-w.death:
		return 0, syscall.ECONNRESET
	case <-w.closed:
		return 0, io.ErrClosedPipe
	case <-w.ctx.Done():
		return 0, w.ctx.Err()
	}
}

func (w *watch) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}
