// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// drawRestore lets a member be restored from a backup in a share of the random configurations. The
// other members notice the restore at once, later or never. If they notice it, one or two changes
// bring the member back.
func drawRestore(r *rand.Rand, cfg *config) {
	if r.IntN(4) > 0 || cfg.loss.peer != "" || cfg.strangers != "" || cfg.tenant > 0 || len(cfg.changes) > 0 {
		return
	}
	i := r.IntN(cfg.peers)
	cfg.restored = peerName(i)
	switch r.IntN(3) {
	case 0:
		cfg.detected = true
	case 1:
		cfg.noticed = true
	}
	if cfg.detected || cfg.noticed {
		for n := range 1 + r.IntN(2) {
			cfg.changes = append(cfg.changes, change("h"+strconv.Itoa(n), Return, cfg.restored))
		}
		cfg.helpers = r.IntN(2)
	}
	// Not modelled together with a restore: moves, shared logs, records, and objects that
	// people apply.
	cfg.takers, cfg.creates = 0, 0
	for i := range cfg.plans {
		op := &cfg.plans[i].op
		op.Central = false
		if op.Action == Move {
			op.Action, op.Payload, op.Digest = Update, "q", "dq"
		}
	}
	cfg.adopters = 0
}

// TestRestoredBeforeTheNameWasTakenAgain removes an object, adds another object of its name, and
// puts back a backup that was taken at any moment of the removal. The rejoin of the restored peer
// must end, if need be after a person has decided about an object.
func TestRestoredBeforeTheNameWasTakenAgain(t *testing.T) {
	for _, mode := range []Mode{Once, Everywhere} {
		for at := 0; ; at++ {
			cfg := config{
				mode: mode, peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA),
				plans: []plan{removal("r"), after(1, add("x", "a", 1, "q"))},
			}
			w := newWorld(&cfg)
			w.alone = true
			w.do(action{actBegin, 0, 0})
			n := 0
			for ; n < at && len(w.net) > 0; n++ {
				w.deliver(0)
			}
			w.do(action{actBackup, 0, 0})
			require.Empty(t, w.drain())
			w.do(action{actBegin, 1, 0})
			require.Empty(t, w.drain())
			require.Equal(t, Done, w.procs[1].result.Ending)
			w.do(action{actRestore, 0, 0})
			require.Empty(t, w.complete(), "%v, a backup after %d steps of the removal", mode, n)
			if n < at {
				break
			}
		}
	}
}

// TestARecoveredComebackClaimsNothing recovers a rejoin whose process crashed before it took its
// first slot (the field of a PeerSet that names the change under way). The recovery returns Ended,
// and not Done, although all PeerSets list the member as Active. It writes no PeerSet, and a new
// rejoin returns Done.
func TestARecoveredComebackClaimsNothing(t *testing.T) {
	sets := ringOf(map[string]string{"a": "r1", "b": "r1"})
	op := ChangeOperation{ID: "x", Kind: Return, Peer: "a", UID: "ua", Peers: []string{"a", "b"}, Lease: 2}
	result := carryThrough(t, RecoverChange(op, ChangeRecord{Anchor: "b"}), sets)
	require.Equal(t, Ended, result.Ending, "%+v", result)
	for p, set := range sets {
		require.EqualValues(t, 1, set.Epoch, "%s was written", p)
	}
	require.Equal(t, Done, carryThrough(t, NewChange(op), sets).Ending)
}

// TestUpdateOfAHomeThatIsDeleted commits an update: another process writes the new revision to the
// home (the object's primary). Then a person deletes the home. The update must return Ended, since
// replicas may have the new revision.
func TestUpdateOfAHomeThatIsDeleted(t *testing.T) {
	cfg := config{mode: Everywhere, peers: 2, committed: "p", deletes: 1, plans: []plan{update("x", "q")}}
	w := newWorld(&cfg)
	w.alone = true
	w.do(action{actBegin, 0, 0})
	for w.net[0].cmd.Verb != Put {
		w.deliver(0)
	}
	_, broken := w.store.apply(Everywhere, w.net[0].cmd)
	require.Empty(t, broken)
	w.note("x")
	w.do(action{actDelete, 0, 0})
	for len(w.net) > 0 {
		w.deliver(0)
	}
	require.Equal(t, Ended, w.procs[0].result.Ending, "%+v", w.procs[0].result)
}

// TestAReplicaOfEachOfTwoHomes removes an object in A and adds another one of its name there. Before the replicas of
// the second object are activated, A is restored with the first. In some runs a sweep gives the first object a replica
// in one member, while the add activates a replica of the second object in another. The rejoin of A must still end, if
// need be after a person has decided about the object in A.
func TestAReplicaOfEachOfTwoHomes(t *testing.T) {
	both := 0
	for adds := range 24 {
		for sweeps := range 24 {
			cfg := config{
				mode: Everywhere, peers: 3, committed: "p", restored: "a", noticed: true, changes: changes(returnA), sweepers: 1,
				plans: []plan{removal("r"), after(1, add("v", "a", 3, "q"))},
			}
			w := stage{t, newWorld(&cfg)}
			w.do(action{actBackup, 0, 0})
			w.do(action{actBegin, 0, 0})
			w.end(0)
			require.Equal(t, Done, w.procs[0].result.Ending)
			w.do(action{actBegin, 1, 0})
			w.run(1, func() bool { o := w.store.cells[0].obj; return o != nil && o.Stage == Active })
			w.do(action{actRestore, 0, 0})
			sweep := slices.IndexFunc(w.procs, func(p *proc) bool { return p.sweep })
			w.do(action{actSweep, uint8(sweep), 0})
			w.steps(sweep, sweeps)
			w.steps(1, adds)
			w.end(sweep)
			w.end(1)
			b, c := w.store.cells[1].obj, w.store.cells[2].obj
			if b != nil && c != nil && b.Stage == Active && c.Stage == Active && b.Of(Everywhere).UID != c.Of(Everywhere).UID {
				both++
			}
			require.Empty(t, w.complete(), "%d steps of the sweep, then %d of the add", sweeps, adds)
		}
	}
	require.Positive(t, both)
}
