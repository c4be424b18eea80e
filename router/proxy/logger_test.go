// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
)

// Options.Logger receives the log line of each request.
func TestLogger(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 1})
	s := newScene(t, Options{Logger: logger})
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/regions/unknown.loodse/api", nil)
	s.proxy.ServeHTTP(httptest.NewRecorder(), r)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "/regions/unknown.loodse/api")
}
