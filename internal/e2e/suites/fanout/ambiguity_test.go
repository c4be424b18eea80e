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

// TestAmbiguity runs the cases of package ambiguitytest on real API servers: a proxy before each
// server disturbs one call of an operation with one fault. The test runs one case in
// ATOLL_AMBIGUITY_EVERY (default 4). Different calls begin with different faults.
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
