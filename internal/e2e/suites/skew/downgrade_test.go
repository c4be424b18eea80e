// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"github.com/stretchr/testify/require"
)

// downgrade returns to the first release: first it changes the programs and keeps the present CRDs,
// then it also changes the CRDs. Finally it upgrades the ring again.
func (w *world) downgrade() {
	t := w.t
	ring := w.ring()
	here := state(w.core[1].Name())

	// With the present CRDs, the programs of the first release recover, add, remove and repair.
	w.present.Shell("last", w.core...).Succeed(t, w.add("last", w.core[1])...)
	w.kill(w.present, "last", "put ServiceCluster", w.add("cut", w.core[1])...)
	w.recover(w.first, "last")
	require.Equal(t, here, w.clusterAt("cut"))
	back := w.first.Shell("back", w.core...)
	back.Succeed(t, w.add("back", w.core[1])...)
	back.Succeed(t, w.removal("cut")...)
	w.repair(w.first)
	w.clean()

	// With the CRDs of the first release, the API server returns no ring ID, and a change of the
	// membership removes the ring ID from each PeerSet.
	w.kill(w.present, "open", "put ServiceCluster", w.add("open", w.core[1])...)
	w.first.Administrator().Succeed(t, "install-crds")
	require.Empty(t, w.ring())
	back.Succeed(t, w.removal("last")...)
	guest := w.first.Shell("guest", w.all()...)
	for _, change := range []string{"join", "leave"} {
		guest.Succeed(t, "peer", change, w.guest.Name())
	}
	w.repair(w.first)
	require.Equal(t, state(""), w.clusterAt("last"))
	require.Equal(t, here, w.clusterAt("back"))

	w.present.Administrator().Succeed(t, "install-crds")
	require.Empty(t, w.ring(), "the first release dropped it")
	w.repair(w.present)
	require.NotEmpty(t, w.ring())
	require.NotEqual(t, ring, w.ring())
	// The log names the former ID of the ring. It is accepted nevertheless, because the members are
	// the same clusters.
	w.recover(w.present, "open")
	require.Equal(t, here, w.clusterAt("open"))
	w.repair(w.present)
	w.requireBound("back")
	w.requireBound("open")
	w.clean()
}
