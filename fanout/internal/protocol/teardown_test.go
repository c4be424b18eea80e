// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARemovalThatARestoreUndidClearsAgain deletes a home. Once the replicas are deleted, it puts
// back a backup from before the delete, lets an update create the replicas again, and deletes the
// home once more. The first removal, which continues, must delete the new replicas too.
func TestARemovalThatARestoreUndidClearsAgain(t *testing.T) {
	cfg := config{mode: Everywhere, peers: 2, committed: "p", restored: "a", deletes: 2, plans: []plan{update("w", "q")}}
	w := newWorld(&cfg)
	w.do(action{actBackup, 0, 0})
	w.do(action{actDelete, 0, 0})
	w.procs = append(w.procs, &proc{sweep: true})
	sweep := len(w.procs) - 1
	of := func(proc int) func(message) bool { return func(m message) bool { return m.proc == proc } }
	cleared := func(m message) bool { return m.cmd.Verb == Delete && m.cmd.Peer == "a" }

	w.sweepAt(sweep, 0, 1)
	for !slices.ContainsFunc(w.net, cleared) {
		w.deliver(slices.IndexFunc(w.net, of(sweep)))
	}
	require.Nil(t, w.store.cells[1].obj, "the replica is cleared")
	w.do(action{actRestore, 0, 0})
	w.do(action{actBegin, 0, 0})
	for slices.ContainsFunc(w.net, of(0)) {
		w.deliver(slices.IndexFunc(w.net, of(0)))
	}
	require.Equal(t, Done, w.procs[0].result.Ending)
	require.NotNil(t, w.store.cells[1].obj)
	w.do(action{actDelete, 0, 0})
	require.Empty(t, w.drain())
	require.Nil(t, w.store.cells[0].obj)
	require.Nil(t, w.store.cells[1].obj, "no replica outlives its home")
}
