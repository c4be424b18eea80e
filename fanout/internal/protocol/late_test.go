// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

var (
	// lateForce has a peer that is removed by force and rejoins, while another process works on the
	// removal or on the rejoin, and an object is added in that peer.
	lateForce = config{mode: Everywhere, peers: 2, inTurn: true, helpers: 1, changes: changes(forceB, returnB), plans: []plan{add("x", "b", 1, "p")}}
	// lateOver is like lateForce, but the add begins after the rejoin.
	lateOver = config{mode: Everywhere, peers: 2, inTurn: true, helpers: 1, changes: changes(forceB, returnB), plans: []plan{after(3, add("x", "b", 1, "p"))}}
	// lateJoin has a peer that joins, while another process works on the join, and an object that is
	// added in that peer and moves away.
	lateJoin = config{mode: Everywhere, peers: 2, ring: 1, helpers: 1, changes: changes(change("j", Join, "b")),
		plans: []plan{onceIn("b", add("x", "b", 1, "p")), after(1, move("m", "a"))}}
)

// lateSmall are configurations in which two processes carry out changes of the membership. One of them is late: it still
// works on a change that the other one has finished, while operations run that began after the change.
var lateSmall = lateHelpers(false)

// lateDeep are configurations like those in lateSmall, whose exploration takes longer.
var lateDeep = append(lateHelpers(true),
	titled("a peer joins, X@B moves away, a late helper", lateJoin),
	titled("a peer joins, X@B moves away and is removed, a late helper", lateJoining(after(1, move("m", "a")), after(2, removal("r")))),
	titled("a peer joins, X@B moves away and back, a late helper", lateJoining(after(1, move("m", "a")), after(2, move("n", "b")))),
	titled("a peer is removed by force and rejoins, X@B, a late helper", lateForce),
	titled("a home is replaced, its peer rejoins, a late helper",
		config{mode: Everywhere, peers: 2, committed: "p", committedAt: 2, inTurn: true, helpers: 1, changes: changes(forceB, returnB)}),
)

// lateJoining returns lateJoin with other operations after the add.
func lateJoining(then ...plan) config {
	cfg := lateJoin
	cfg.plans = append([]plan{lateJoin.plans[0]}, then...)
	return cfg
}

// lateHelpers returns configurations with a late process, in which the operations begin after all changes. If large is
// false, it returns those with a few thousand states, otherwise the larger ones.
func lateHelpers(large bool) []config {
	var all []config
	for _, changed := range []struct {
		name    string
		large   bool
		changes []ChangeOperation
	}{
		{"B is removed by force", false, changes(forceB)},
		{"B is removed by force and rejoins", false, changes(forceB, returnB)},
		{"B leaves", false, changes(leaveB)},
		{"B leaves and joins", true, changes(leaveB, change("j", Join, "b"))},
	} {
		rejoins := len(changed.changes) > 1
		for _, then := range []struct {
			name    string
			rejoins bool // the operations need B
			mode    Mode
			plans   []plan
		}{
			{"X@A", false, Once, []plan{add("x", "a", 1, "p")}},
			{"X@B, removal", true, Once, []plan{add("x", "b", 1, "p"), after(1, removal("r"))}},
			{"account added in A, move", false, Everywhere, []plan{add("x", "a", 1, "p"), after(1, move("m", "b"))}},
			{"account added in B, removal", true, Everywhere, []plan{add("x", "b", 1, "p"), after(1, removal("r"))}},
			{"account added in B, update", true, Everywhere, []plan{add("x", "b", 1, "p"), after(1, update("u", "q"))}},
			{"account added in B, move", true, Everywhere, []plan{add("x", "b", 1, "p"), after(1, move("m", "a"))}},
		} {
			if changed.large != large || then.rejoins && !rejoins {
				continue
			}
			// In world.procs the changes follow the operations: the first operation begins after the last change.
			then.plans[0].after = len(then.plans) + len(changed.changes)
			all = append(all, config{
				name: changed.name + ", then " + then.name + ", a late helper", mode: then.mode, peers: 2, inTurn: true, helpers: 1,
				changes: changed.changes, plans: then.plans,
			})
		}
	}
	return all
}

// lateMutants break the rules for a process that is late with a change of the membership.
var lateMutants = []broken{
	{rule: "a late force-remove replaces no home whose peer is a member again", want: "I", cfg: with(lateOver, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskSurvey && s.Step == stepSet {
				r.PeerSet.Members = nil
			}
			return r
		},
	})},
	{rule: "a newcomer is not covered while a former home in it is being deleted", want: "I", cfg: with(lateForce, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); p.op.Action == Cover && s.Task == taskBring {
				r.Object.Terminating = false
			}
			return r
		},
	})},
	{rule: "a late rejoin deletes no former home in a full member", want: "I2", cfg: with(lateJoin, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskResign && s.Step == stepSet {
				r.PeerSet.Self.State = peerQuarantined
			}
			return r
		},
	})},
}
