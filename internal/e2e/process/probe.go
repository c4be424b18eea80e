// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Probe gets a path of the health server at the address, over a new connection. The code is zero if there is no answer.
func Probe(ctx context.Context, address, path string) (code int, text string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// Ready returns nil if /readyz at the address answers 200, else an error with the answer.
func Ready(ctx context.Context, address string) error {
	if code, text := Probe(ctx, address, "/readyz"); code != http.StatusOK {
		return fmt.Errorf("%d: %s", code, text)
	}
	return nil
}
