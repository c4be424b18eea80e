// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/ambiguitytest"
	"github.com/atoll-dev/atoll/region"
)

// TestAmbiguity lets each call of each operation meet each ambiguity, over HTTP/2
// and TLS through a box before each API server in memory.
func TestAmbiguity(t *testing.T) {
	t.Parallel()
	ambiguitytest.Run(t, true, func(t *testing.T) *ambiguitytest.Bench {
		t.Helper()
		r := newRing(t)
		kubeconfigs := map[region.PeerName][]byte{}
		for _, peer := range peers {
			kubeconfig, err := r.Server(peer).Listen(t.Context())
			require.NoError(t, err)
			kubeconfigs[peer] = kubeconfig
		}
		return ambiguitytest.NewBench(t, kubeconfigs, 30*time.Millisecond)
	})
}
