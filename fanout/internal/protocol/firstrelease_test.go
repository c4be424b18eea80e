// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// This file models the add of the first release that a record in a central log decides. The
// commit is a write of the record, so the add claims the name in all peers at once. No program
// of this release starts such an add; this release only settles them.

const (
	// Propose creates the record of the machine's operation, pending.
	Propose Verb = "propose"
	// Decide commits the pending record, with Object.Bound as its primary, if the record has UID
	// and RV.
	Decide Verb = "decide"

	proposing Phase = "proposing"
	deciding  Phase = "deciding"

	taskPropose task = "propose"
	taskDecide  task = "decide"

	stepPropose step = "propose"
	stepDecide  step = "decide"
)

// first reports whether the machine runs an add of the first release, as opposed to settling one.
func (m *Machine) first() bool { return m.central() && !m.Resumed }

// startFirst returns the first commands. No claim is created before the record is acknowledged. So a
// claim whose record does not exist is dead: it does not hold the name.
func (m *Machine) startFirst() []Command {
	m.enter(proposing)
	m.spawnFirst(taskPropose, "")
	m.proceedFirst()
	return m.take()
}

// handleFirst does for an add of the first release what Handle does for other operations.
func (m *Machine) handleFirst(r Reply) []Command {
	i := r.Strand - m.Earlier
	if m.Phase == over || i < 0 || i >= len(m.Strands) {
		return nil
	}
	s := &m.Strands[i]
	if s.Over || !s.Busy || s.Seq != r.Seq {
		return nil
	}
	s.Busy = false
	m.stepFirst(i, r)
	m.proceedFirst()
	return m.take()
}

func (m *Machine) spawnFirst(j task, peer string) {
	m.Strands = append(m.Strands, Strand{Task: j, Peer: peer})
	m.stepFirst(len(m.Strands)-1, Reply{})
}

func (m *Machine) stepFirst(i int, r Reply) {
	switch m.Strands[i].Task {
	case taskPropose:
		m.stepPropose(i, r)
	case taskDecide:
		m.stepDecide(i, r)
	case taskAcquire:
		m.stepClaim(i, r)
	case taskConvert, taskBind:
		m.stepHeld(i, r)
	default:
		m.step(i, r)
	}
}

func (m *Machine) proceedFirst() {
	for m.Phase != over && m.settled() {
		switch {
		case m.Phase == proposing:
			m.afterProposing()
		case m.Phase == claiming && (m.Stopping || m.Expired):
			m.withdrawFirst()
		case m.Phase == claiming:
			if m.Result.Problem = (addJob{m}).membership(); m.Result.Problem != "" {
				m.because(Membership, m.Op.Target)
				m.withdrawFirst()
				continue
			}
			m.enter(deciding)
			m.HaveSet = false
			m.spawnFirst(taskDecide, "")
		case m.Phase == deciding:
			m.afterDeciding()
		case m.Phase == withdrawing && (m.Decision.Committed || !m.Withdrawn && m.Unsure || m.Record.Committed):
			m.next()
		case m.Phase == withdrawing:
			if m.Result.Reason == TakenOver {
				m.Result.Reason = Fenced
			}
			m.Result.Ending = Aborted
			abortJob{m}.clean()
		default:
			m.next()
		}
	}
}

func (m *Machine) stepPropose(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case stepStart, stepRetry:
		m.strand(i).send(stepPropose, Command{Verb: Propose, Record: m.Op.ID})
	case stepPropose:
		switch {
		case r.Class == Applied:
			m.Decision = *r.Decision
			m.strand(i).finish()
		case r.Code == Denied:
			m.strand(i).fail(LogFailed)
		default:
			m.strand(i).send(stepRead, Command{Verb: ReadRecord, Record: m.Op.ID})
		}
	case stepRead:
		// No other operation proposes this ID, so the record is this operation's own.
		if r.Code == OK && !r.Decision.Committed {
			m.Decision = *r.Decision
			m.strand(i).finish()
		} else if r.Code == Denied || !m.strand(i).again(stepRetry) {
			m.strand(i).fail(LogFailed)
		}
	}
}

// afterProposing claims the name in all peers at once.
func (m *Machine) afterProposing() {
	if m.Stopping || m.Expired {
		m.withdrawFirst()
		return
	}
	m.enter(claiming)
	for _, p := range m.Op.Peers {
		m.spawnFirst(taskAcquire, p)
		if p != m.Op.Target {
			m.spawn(taskPeerSet, p)
		}
	}
}

// withdrawFirst aborts the add.
func (m *Machine) withdrawFirst() {
	m.Stopping = true
	if m.Decision.UID == "" {
		m.Withdrawn = true // no record is known: recovery settles one that a late create makes
		abortJob{m}.clean()
		return
	}
	centralJob{m}.withdraw()
}

// stepClaim is the step of an acquireTask for a claim that names the record.
func (m *Machine) stepClaim(i int, r Reply) {
	s := &m.Strands[i]
	o := r.Object
	switch {
	case s.Step == stepCreate && r.Class == Applied:
		s.X = o
		m.holdClaim(i)
	case s.Step == stepRead && r.Code == OK && o.Claimed && o.Claim.Operation == m.Op.ID && o.Claim.Peer == s.Peer && !o.Terminating && o.Stage == Reserved:
		// The claim comes from a create whose reply was lost. If it names an earlier record of this
		// operation, it cannot be bound to the present record.
		s.X = o
		if o.Claim.Record == m.Decision.UID {
			m.holdClaim(i)
			return
		}
		m.mayClaim(i)
		m.strand(i).fail(Contended)
	default:
		acquireTask{m.strand(i)}.step(r)
		if s.Unsure {
			m.mayClaim(i)
		}
	}
	for k := range m.out {
		if c := &m.out[k]; c.Verb == Create && c.Strand == m.Earlier+i {
			c.Object.Claim.Record, c.Object.Claim.Of = m.Decision.UID, Ref{}
		}
	}
}

// mayClaim records that a create in the strand's peer may still be applied at any time.
func (m *Machine) mayClaim(i int) {
	if m.Adrift {
		m.Present, m.Adrift = m.Primary.UID != "", false
	}
	c := m.Claims[m.Strands[i].Peer]
	c.Unsure = true
	m.Claims[m.Strands[i].Peer] = c
}

// holdClaim ends strand i after it has taken the name. In the target it then reads the members
// and the owner of the namespace.
func (m *Machine) holdClaim(i int) {
	s := &m.Strands[i]
	m.strand(i).finish()
	m.Claims[s.Peer] = Claimed{Object: s.X, Held: true, Unsure: s.Unsure}
	if s.Peer != m.Op.Target {
		return
	}
	m.Present = true
	m.Primary = s.X
	m.Record.Primary = Ref{Peer: s.Peer, UID: s.X.UID}
	m.spawn(taskPeerSet, m.Op.Target)
	if m.Op.Within {
		m.spawn(taskOwner, m.Op.Target)
	}
}

func (m *Machine) sendDecide(i int) {
	m.strand(i).send(stepDecide, Command{Verb: Decide, Record: m.Op.ID, Object: Object{Bound: m.Record.Primary}, UID: m.Decision.UID, RV: m.Decision.RV})
}

func (m *Machine) stepDecide(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case stepStart:
		m.sendDecide(i)
	case stepDecide:
		switch {
		case r.Class == Applied:
			m.decided(*r.Decision)
			m.strand(i).finish()
			return
		case r.Class == Unknown:
			m.Unsure = true
		case r.Code == Denied && !m.Unsure:
			m.strand(i).fail(Refused)
			return
		}
		m.strand(i).send(stepRead, Command{Verb: ReadRecord, Record: m.Op.ID})
	case stepReread:
		m.strand(i).send(stepRead, Command{Verb: ReadRecord, Record: m.Op.ID})
	case stepRead:
		switch {
		case r.Code == NotFound, r.Code == OK && r.Decision.UID != m.Decision.UID:
			m.undone(i)
		case r.Code != OK:
			m.doubtful(i, stepReread)
		case r.Decision.Committed:
			m.decided(*r.Decision)
			m.strand(i).finish()
		case r.Decision.Taken:
			// Every commit that was sent names the record's version from before the takeover, so it
			// can no longer be applied.
			m.Withdrawn = true
			m.because(Fenced, "")
			m.Result.Ending = Aborted
			m.strand(i).finish()
		case m.Expired:
			m.Decision = *r.Decision
			m.strand(i).send(stepWithdraw, Command{Verb: Withdraw, Record: m.Op.ID, UID: m.Decision.UID, RV: m.Decision.RV})
		default:
			m.Decision = *r.Decision
			m.sendDecide(i)
		}
	case stepWithdraw:
		if r.Class != Applied {
			m.doubtful(i, stepReread)
			return
		}
		m.because(Late, "")
		m.Result.Ending = Aborted
		m.Withdrawn = true
		m.strand(i).finish()
	case stepTargetAgain:
		m.strand(i).send(stepTarget, Command{Verb: Read, Peer: m.Record.Primary.Peer})
	case stepTarget:
		m.targetTells(i, r)
	}
}

// doubtful lets strand i read again from step next after a pause. If the strand has read often
// enough, doubtful ends it, with the ending InDoubt if a commit may have been applied.
func (m *Machine) doubtful(i int, next step) {
	s := &m.Strands[i]
	if s.Tries++; s.Tries < (commitJob{m}).askLimit() {
		m.strand(i).pause(next)
		return
	}
	m.because(Unreachable, s.Peer)
	if m.Unsure {
		m.Result.Ending = InDoubt
	}
	m.strand(i).finish()
}

// undone lets strand i find out how the add ended, because its record is gone. If a commit may have
// been applied, the strand reads the target: a committed record is deleted only when no claim is
// undecided, so a claim that is Reserved there proves the abort. If no commit may have been
// applied, the add is Aborted.
func (m *Machine) undone(i int) {
	m.Withdrawn = true
	m.because(Fenced, "")
	if m.Unsure {
		m.strand(i).send(stepTarget, Command{Verb: Read, Peer: m.Record.Primary.Peer})
		return
	}
	m.Result.Ending = Aborted
	m.strand(i).finish()
}

func (m *Machine) targetTells(i int, r Reply) {
	switch {
	case r.Code == NotFound, r.Code == OK && r.Object.UID != m.Record.Primary.UID:
		m.Result.Ending = Ended
	case r.Code != OK:
		m.Withdrawn = false
		m.doubtful(i, stepTargetAgain)
		return
	case r.Object.Stage == Reserved:
		m.Result.Ending = Aborted
	default:
		m.Primary = r.Object
		m.Record.Committed = true
	}
	m.strand(i).finish()
}

func (m *Machine) afterDeciding() {
	switch {
	case m.Record.Committed:
		m.Result.Reason, m.Result.Peer = "", ""
		m.bindFirst()
	case m.Result.Ending == InDoubt:
		m.end(InDoubt)
	case m.Result.Ending == Running:
		m.withdrawFirst()
	default:
		abortJob{m}.clean()
	}
}

// bindFirst completes a committed add: it puts the target's object into effect, and binds the
// claims in the other peers to this object.
func (m *Machine) bindFirst() {
	m.Stopping = false
	m.enter(binding)
	m.spawnFirst(taskConvert, m.Record.Primary.Peer)
	for _, p := range m.Op.Peers {
		if p != m.Record.Primary.Peer {
			m.spawnFirst(taskBind, p)
		}
	}
}

// stepHeld writes a held claim without reading it first.
func (m *Machine) stepHeld(i int, r Reply) {
	s := &m.Strands[i]
	c := m.Claims[s.Peer]
	switch {
	case s.Step == stepStart && c.Held && s.Task == taskConvert:
		convertTask{sealedTask{m.strand(i)}}.sendPut(c.Object)
	case s.Step == stepStart && c.Held:
		s.X = c.Object
		sealedTask{m.strand(i)}.sendBind(m.Record.Primary)
	case s.Task == taskBind && s.Step == stepPut && r.Class == Applied && c.Held:
		m.Claims[s.Peer] = Claimed{Object: r.Object, Held: true}
		m.strand(i).finish()
	default:
		if s.Task == taskBind && s.Step == stepPut && r.Class != Applied {
			// The claim that is bound next may come from a late create, after the commit.
			delete(m.Claims, s.Peer)
		}
		m.step(i, r)
	}
}
