// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
)

// A move ends 2*maxPaths watches. Another user of the Client then lists each collection at the new peer. Even so, each
// watch that starts again at its old resourceVersion counts as foreign.
func TestEveryWatchThatAMoveEndsStartsFromAList(t *testing.T) {
	before, after := new(region.Conn), new(region.Conn)
	request := func(i int, query string) *http.Request {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("https://eu.invalid/api/v1/namespaces/n%d/pods%s", i, query), nil)
		require.NoError(t, err)
		return req
	}
	h := newHistory()
	const watches = 2 * maxPaths
	for i := range watches {
		require.False(t, h.foreign(before, request(i, "?watch=1&resourceVersion=7")))
	}
	for i := range watches {
		h.end(request(i, "?watch=1&resourceVersion=7"))
	}
	for i := range watches {
		h.note(after, request(i, ""), &http.Response{StatusCode: http.StatusOK})
		require.True(t, h.foreign(after, request(i, "?watch=1&resourceVersion=7")), "watch %d", i)
	}
	require.Empty(t, h.ended)
}
