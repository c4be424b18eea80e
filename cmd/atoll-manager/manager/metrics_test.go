// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
)

// A replica that is not a master yet has no Ring, and exposes the metrics without labels.
func TestMetricsBeforeTheLoops(t *testing.T) {
	m, err := newMetrics(func() *region.Ring { return nil }, func() uint64 { return 3 })
	require.NoError(t, err)
	m.Shard(nil).Changed(1, []string{"manager-0", "manager-1"})
	m.Central(nil)

	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	require.Equal(t, http.StatusOK, w.Code)
	for _, line := range []string{"atoll_shard_replicas 2", "atoll_master_running 0", "atoll_regions_decided_total 0", "atoll_events_dropped_total 3"} {
		require.Contains(t, w.Body.String(), line+"\n")
	}
	for line := range strings.Lines(w.Body.String()) {
		require.False(t, strings.HasPrefix(line, "atoll_peer_healthy"), line)
	}
}
