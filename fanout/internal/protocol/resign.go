// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A peer that was given up may come back with homes that were replaced in its
// absence. What tells is the term of the successor: those who made it had the
// slots of all members, so that nothing in force there names the old home.

// resign compares what was home in a peer that comes back with what the members
// Into have of it, and takes it away if another home has replaced it.
func (m *Machine) resign() {
	m.Primary = m.Op.Met
	m.enter(surveying)
	for _, p := range m.Op.Into {
		m.spawn(jobSurvey, p)
	}
}

// awaits says whether o, Reserved in a member, waits for what was home and comes
// back.
func (m *Machine) awaits(o Object) bool {
	met := m.Op.Met
	return m.Op.Action == Resign && o.Pending() && !met.Primary(Everywhere) && o.Of(Everywhere) == Ref{Peer: m.Op.Target, UID: met.UID}
}

// void writes o once more. Who brings it into force may have read its home while
// that was one: what was judged on o is void then.
func (m *Machine) void(i int, o Object) {
	o.Heartbeat++
	m.send(i, "void", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: o, UID: o.UID, RV: o.RV})
}

func (m *Machine) voided(i int, r Reply) {
	switch {
	case r.Class == Applied:
		m.Strands[i].X = r.Object
		m.finish(i)
	case r.Code == Denied, r.Code == NoSuchPeer, !m.again(i, "retry"):
		m.unconfirmed(i)
	}
}

// afterComparing deletes a home that was replaced. One that the members
// have in force, or hold by a record, is left alone. Any other may have
// been removed since: Result.Reason tells that nobody knows.
func (m *Machine) afterComparing() {
	own := m.Primary
	var latest Object
	known, named := false, false
	for _, s := range m.Strands {
		named = named || s.X.inForce() && s.X.Of(Everywhere) == Ref{Peer: m.Op.Target, UID: own.UID}
		known = known || s.X.inForce() || s.X.Claim.Record != ""
		if s.X.Claimed && s.X.Stage != Reserved && (!latest.Claimed || s.X.term() > latest.term()) {
			latest = s.X
		}
	}
	home := own.Primary(Everywhere)
	switch {
	case len(m.Result.Pending) > 0:
		m.end(Done)
	case !home && named && latest.term()/generation <= own.term()/generation:
		// It moved, and not everybody was told. If nobody else is home it is again.
		m.Op.Action = Sweep
		m.astray(own, m.Op.Target)
		m.regain()
	case latest.Claimed && latest.term()/generation > own.term()/generation,
		latest.Claimed && !home && latest.term() >= own.term():
		m.succeededBy(latest.Of(Everywhere), latest.term())
	case !home && !own.yielded(Everywhere) && !known:
		m.succeededBy(own.Of(Everywhere), own.term())
	case !home && !known && !own.Terminating:
		// Who it yielded to may have been home, and be removed since.
		m.because(Missing, m.Op.Target)
		m.end(Done)
	case !home, own.Leaving():
		m.Op.Action = Sweep
		m.sweep()
	case !known:
		m.because(Missing, m.Op.Target)
		m.end(Done)
	default:
		m.end(Done)
	}
}

// succeededBy takes what was home away: home has its place, or had.
func (m *Machine) succeededBy(home Ref, term int64) {
	m.Record.Elect, m.Record.Term = home, term
	m.enter(resigning)
	m.spawn(jobResign, m.Op.Target)
}

// stepResign lets what was home name its successor, deletes it, and takes the
// finalizer from it last: it may have revisions that its successor never heard
// of, and without the finalizer it is a replica like others.
func (m *Machine) stepResign(i int, r Reply) {
	s := &m.Strands[i]
	home := Home{Ref: m.Record.Elect, Term: m.Record.Term}
	switch s.Step {
	case "", "again":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		o := r.Object
		switch {
		case r.Code == NotFound, r.Code == OK && o.UID != m.Op.Met.UID:
			m.finish(i)
		case r.Code == OK && o.term() > m.Record.Term:
			m.unconfirmed(i)
		case r.Code == OK && o.Home != home:
			o.Home = home
			m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
		case r.Code == OK && !o.Terminating:
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: o.UID, RV: o.RV})
		case r.Code == OK && o.Finalizer:
			o.Finalizer = false
			m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
		case r.Code == Denied, r.Code == NoSuchPeer, !m.again(i, "again"):
			m.unconfirmed(i)
		}
	case "put", "delete":
		m.Result.Removed = m.Result.Removed || r.Class == Applied
		switch {
		case r.Class == Applied && m.Op.Met.Primary(Everywhere):
			// The members are asked again now that it is no home.
			m.finish(i)
		case r.Class == Applied:
			m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
		case r.Code == Denied || !m.again(i, "again"):
			m.unconfirmed(i)
		}
	}
}
