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

// However many watches a move ends, none of them goes on with a version of the old peer, even if another user of the
// Client has listed the collection at the new peer.
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
