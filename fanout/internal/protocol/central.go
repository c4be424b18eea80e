// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// The central log's variant of an add: the operation's record in the log is its
// decision, so the name is claimed in all peers at once. A claim names the
// record; nobody touches a claim of a pending record, so at the commit all of
// them are in place, and they stay.

// Decision is the record of an operation in a central log.
type Decision struct {
	UID, RV   string
	Committed bool
	Of        Ref // once committed: the object that it was decided for
	// Taken: somebody else works on the operation by now. He writes the record
	// from then on, and withdraws it if it is pending.
	Taken bool
}

// Verbs on records. Command.Record is the ID of the operation.
const (
	// Propose creates the record of the machine's operation, pending.
	Propose Verb = "propose"
	// ReadRecord reads a record, from a quorum.
	ReadRecord Verb = "read-record"
	// Decide makes the pending record Decision if UID and RV still hold.
	Decide Verb = "decide"
	// Withdraw deletes a pending record if UID and RV still hold: the abort, by
	// anybody.
	Withdraw Verb = "withdraw"
)

const (
	proposing   Phase = "proposing"
	deciding    Phase = "deciding"
	binding     Phase = "binding" // the claims to the object that was decided for
	withdrawing Phase = "withdrawing"

	jobPropose  job = "propose"
	jobDecide   job = "decide"
	jobConvert  job = "convert"
	jobBind     job = "bind"
	jobWithdraw job = "withdraw"
	jobRecord   job = "record"
)

// central says that the record is this operation's decision.
func (m *Machine) central() bool { return m.Op.Central && m.Op.Action == Add }

// Undecided says that o is a claim that only its record can judge.
func (o Object) Undecided() bool {
	return o.Claimed && o.Claim.Record != "" && o.Stage == Reserved && (o.Claim.Primary || o.Bound == Ref{})
}

// Sibling says that x is a claim of the operation that y came from.
func (o Object) Sibling(y Object) bool {
	return o.Claimed && o.Claim.Record != "" && o.Claim.Record == y.Claim.Record && o.Claim.Operation == y.Claim.Operation
}

// propose makes the record. Claims begin only when it was answered, so that a
// claim whose record is not there is dead.
func (m *Machine) propose() {
	m.enter(proposing)
	m.spawn(jobPropose, "")
}

func (m *Machine) stepPropose(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "retry":
		m.send(i, "propose", Command{Verb: Propose, Record: m.Op.ID})
	case "propose":
		switch {
		case r.Class == Applied:
			m.Decision = *r.Decision
			m.finish(i)
		case r.Code == Denied:
			m.fail(i, LogFailed)
		default:
			m.send(i, "read", Command{Verb: ReadRecord, Record: m.Op.ID})
		}
	case "read":
		// Nobody else proposes under this ID, so the record is this one's own.
		if r.Code == OK && !r.Decision.Committed {
			m.Decision = *r.Decision
			m.finish(i)
		} else if r.Code == Denied || !m.again(i, "retry") {
			m.fail(i, LogFailed)
		}
	}
}

// afterProposing claims the name in all peers at once.
func (m *Machine) afterProposing() {
	if m.Stopping || m.Expired {
		m.abort()
		return
	}
	m.enter(claiming)
	for _, p := range m.Op.Peers {
		m.spawn(jobAcquire, p)
		if p != m.Op.Target {
			m.spawn(jobPeerSet, p)
		}
	}
}

// decide sends the one write that decides.
func (m *Machine) decide() {
	m.enter(deciding)
	m.HaveSet = false
	m.spawn(jobDecide, "")
}

func (m *Machine) sendDecide(i int) {
	d := m.Decision
	d.Committed, d.Of = true, m.Record.Primary
	m.send(i, "decide", Command{Verb: Decide, Record: m.Op.ID, Decision: d, UID: d.UID, RV: d.RV})
}

func (m *Machine) stepDecide(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		m.sendDecide(i)
	case "decide":
		switch {
		case r.Class == Applied:
			m.decided(i, *r.Decision)
			return
		case r.Class == Unknown:
			m.Unsure = true
		case r.Code == Denied && !m.Unsure:
			m.fail(i, Refused)
			return
		}
		m.send(i, "read", Command{Verb: ReadRecord, Record: m.Op.ID})
	case "reread":
		m.send(i, "read", Command{Verb: ReadRecord, Record: m.Op.ID})
	case "read":
		switch {
		case r.Code == NotFound, r.Code == OK && r.Decision.UID != m.Decision.UID:
			m.undone(i)
		case r.Code != OK:
			m.doubtful(i, "reread")
		case r.Decision.Committed:
			m.decided(i, *r.Decision)
		case r.Decision.Taken:
			// Whatever was sent was meant for the record as it was before.
			m.Withdrawn = true
			m.because(Fenced, "")
			m.Result.Ending = Aborted
			m.finish(i)
		case m.Expired:
			m.Decision = *r.Decision
			m.send(i, "withdraw", Command{Verb: Withdraw, Record: m.Op.ID, UID: m.Decision.UID, RV: m.Decision.RV})
		default:
			m.Decision = *r.Decision
			m.sendDecide(i)
		}
	case "withdraw":
		if r.Class != Applied {
			m.doubtful(i, "reread")
			return
		}
		m.because(Late, "")
		m.Result.Ending = Aborted
		m.Withdrawn = true
		m.finish(i)
	case "target again":
		m.send(i, "target", Command{Verb: Read, Peer: m.Record.Primary.Peer})
	case "target":
		m.targetTells(i, r)
	}
}

func (m *Machine) decided(i int, d Decision) {
	m.Decision = d
	m.Record.Primary = d.Of
	m.Record.Committed = true
	m.finish(i)
}

// doubtful asks once more, or gives up in doubt.
func (m *Machine) doubtful(i int, next step) {
	s := &m.Strands[i]
	if s.Tries++; s.Tries < m.patience() {
		m.pause(i, next)
		return
	}
	m.because(Unreachable, s.Peer)
	if m.Unsure {
		m.Result.Ending = InDoubt
	}
	m.finish(i)
}

// undone ends strand i whose record is gone. If a commit may have been applied,
// the target tells: a committed record goes only when nothing is undecided.
func (m *Machine) undone(i int) {
	m.Withdrawn = true
	m.because(Fenced, "")
	if m.Unsure {
		m.send(i, "target", Command{Verb: Read, Peer: m.Record.Primary.Peer})
		return
	}
	m.Result.Ending = Aborted
	m.finish(i)
}

func (m *Machine) targetTells(i int, r Reply) {
	switch {
	case r.Code == NotFound, r.Code == OK && r.Object.UID != m.Record.Primary.UID:
		m.Result.Ending = Ended
	case r.Code != OK:
		m.Withdrawn = false
		m.doubtful(i, "target again")
		return
	case r.Object.Stage == Reserved:
		m.Result.Ending = Aborted
	default:
		m.Primary = r.Object
		m.Record.Committed = true
	}
	m.finish(i)
}

func (m *Machine) afterDeciding() {
	switch {
	case m.Record.Committed:
		m.Result.Reason, m.Result.Peer = "", ""
		m.bind()
	case m.Result.Ending == InDoubt:
		m.end(InDoubt)
	case m.Result.Ending == Running:
		m.abort()
	default:
		m.clean()
	}
}

// lookAround reads in the target, after the claim there is held, who the members
// are and who owns the namespace.
func (m *Machine) lookAround(target string) {
	m.spawn(jobPeerSet, target)
	if m.Op.Within {
		m.spawn(jobOwner, target)
	}
}

// ours says that o is what an abort of this operation takes down. A claim that
// was bound is not: its record was committed.
func (m *Machine) ours(o Object) bool {
	if m.central() {
		return o.Undecided() && o.Claim.Record == m.Decision.UID
	}
	return !o.Primary(m.Op.Mode)
}
