// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// ErrDraining ends a watch without an error for its client. Pass it as the cause (context.WithCancelCause) when a
// program that drains cancels the contexts of its requests. Clients such as informers then watch again from where
// they were, at another replica. If a watch is cut short instead, they list again.
var ErrDraining = errors.New("the gateway is draining")

// drainable is the body of a watch, which ends without an error if the gateway drains.
type drainable struct {
	io.ReadCloser
	request *http.Request
}

func (d *drainable) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if err != nil && errors.Is(context.Cause(d.request.Context()), ErrDraining) {
		err = io.EOF
	}
	return n, err
}
