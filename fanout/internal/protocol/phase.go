// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// Phase is the step of the protocol that a machine works on.
type Phase string

const (
	beginning  Phase = "beginning"
	reserving  Phase = "reserving" // creating the primary
	claiming   Phase = "claiming"  // creating the secondaries
	advancing  Phase = "advancing" // writing to the log that a commit may be sent
	committing Phase = "committing"
	bringing   Phase = "bringing"   // writing the objects of the other peers after the commit
	fencing    Phase = "fencing"    // deleting our own primary, after a failure
	cleaning   Phase = "cleaning"   // deleting our own secondaries
	meeting    Phase = "meeting"    // reading the object to adopt
	accepting  Phase = "accepting"  // committing a person's edit of the home
	finding    Phase = "finding"    // searching the primary of an update or removal
	listing    Phase = "listing"    // listing the namespace, before a removal
	emptying   Phase = "emptying"   // waiting until only our finalizer is left on the primary
	clearing   Phase = "clearing"   // deleting the guards or replicas of a removal
	counting   Phase = "counting"   // counting the removals that plain deletes request
	postponing Phase = "postponing" // recording that a requested removal is held
	releasing  Phase = "releasing"
	dropping   Phase = "dropping"  // removing our finalizer
	following  Phase = "following" // following a primary that has moved
	electing   Phase = "electing"  // preparing the replica that a primary moves to
	surveying  Phase = "surveying" // reading the object in all members, because its home was lost or is to be compared
	freezing   Phase = "freezing"  // making the replicas of an object without a home name the elected replica
	crowning   Phase = "crowning"  // making the elected replica home
	resigning  Phase = "resigning" // deleting a former home
	sealing    Phase = "sealing"   // binding guards after the commit
	mending    Phase = "mending"   // writing a home that a replica contradicts
	judging    Phase = "judging"
	covering   Phase = "covering" // creating secondaries in peers that become members
	recovering Phase = "recovering"
	attesting  Phase = "attesting" // reading the epoch of the primary's peer, before an attempt of unknown result counts as aborted
	ending     Phase = "ending"
	over       Phase = "over"
)

// enter begins phase p. It drops the strands (running tasks) of the last phase, but never reuses
// their numbers, so that a late reply cannot be taken for one of the new phase.
func (m *Machine) enter(p Phase) {
	m.Earlier += len(m.Strands)
	m.Strands = nil
	m.Phase = p
}

// settled reports whether all strands of the present phase have ended. It ignores the strand of the
// heartbeat, except while a write of the heartbeat is outstanding.
func (m *Machine) settled() bool {
	return !slices.ContainsFunc(m.Strands, func(s Strand) bool {
		return !s.Over && (s.Task != taskBeat || s.Step == stepBeat)
	})
}

// proceed chooses the next phase once all strands of the present phase have ended. It passes
// through a phase without work at once.
func (m *Machine) proceed() {
	for m.Phase != over && m.settled() {
		m.next()
	}
}

func (m *Machine) next() {
	switch m.Phase {
	case beginning:
		endJob{m}.afterBegin()
	case reserving:
		addJob{m}.afterReserving()
	case claiming:
		addJob{m}.afterClaiming()
	case advancing:
		commitJob{m}.afterAdvancing()
	case committing:
		commitJob{m}.afterCommitting()
	case bringing:
		bringJob{m}.afterBringing()
	case fencing:
		abortJob{m}.afterFencing()
	case cleaning:
		abortJob{m}.afterCleaning()
	case finding:
		findJob{m}.afterFinding()
	case meeting:
		adoptJob{m}.afterMeeting()
	case accepting:
		acceptJob{m}.afterAccepting()
	case listing:
		removeJob{m}.afterListing()
	case counting:
		holdJob{m}.afterCounting()
	case postponing:
		holdJob{m}.keepInEffect()
	case emptying:
		removeJob{m}.afterEmptying()
	case clearing:
		removeJob{m}.afterClearing()
	case releasing:
		removeJob{m}.afterReleasing()
	case dropping:
		removeJob{m}.afterDropping()
	case following:
		findJob{m}.afterFollowing()
	case electing:
		moveJob{m}.afterElecting()
	case surveying:
		if m.Op.Action == Resign {
			resignJob{m}.afterComparing()
			return
		}
		succeedJob{m}.afterSurveying()
	case freezing:
		succeedJob{m}.afterFreezing()
	case crowning:
		succeedJob{m}.afterCrowning()
	case sealing:
		bringJob{m}.brought()
	case mending:
		mendJob{m}.afterMending()
	case judging, resigning:
		sweepJob{m}.afterJudging()
	case binding:
		centralJob{m}.afterBinding()
	case withdrawing:
		centralJob{m}.afterWithdrawing()
	case inquiring:
		centralJob{m}.afterInquiring()
	case covering:
		coverJob{m}.afterCovering()
	case recovering:
		recoverJob{m}.afterRecovering()
	case attesting:
		endJob{m}.conclude(Aborted)
	case ending:
		m.Phase = over
	}
}
