// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"
	"time"

	"github.com/atoll-dev/atoll/internal/ambiguitytest"
	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

// TestAmbiguity makes the calls of each operation meet ambiguities, through a box before each API
// server. It runs one case in ATOLL_AMBIGUITY_EVERY (default 4); different calls meet different
// ambiguities.
func TestAmbiguity(t *testing.T) {
	ambiguitytest.Run(t, false, ctltest.Count(t, "ATOLL_AMBIGUITY_EVERY", 4), func(t *testing.T) *ambiguitytest.Bench {
		t.Helper()
		r := newRing(t, planetest.Shared(t, 3))
		kubeconfigs := map[region.PeerName][]byte{}
		for name, kubeconfig := range r.kubeconfigs {
			kubeconfigs[region.PeerName(name)] = kubeconfig
		}
		return ambiguitytest.NewBench(t, kubeconfigs, 200*time.Millisecond)
	})
}
