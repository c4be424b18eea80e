// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Adds of the first release that were decided by a record in a central log. The
// claims of such an add stand in all peers and name the record. No machine touches
// a claim of a pending record, so at the commit all of them were in place, and they
// stay. No operation of this release is decided so: what follows settles what the
// first one left, or does beside this one.

// Decision is such a record.
type Decision struct {
	UID, RV   string
	Committed bool
	Of        Ref // once committed: the object that it was decided for
	// Taken: another coordinator works on the operation by now. It alone writes
	// the record from then on, and withdraws it if it is pending.
	Taken bool
}

// Verbs on records. Command.Record is the ID of the operation.
const (
	// ReadRecord reads a record, from a quorum.
	ReadRecord Verb = "read-record"
	// Withdraw ends a pending record if UID and RV still hold: the abort, by
	// anybody.
	Withdraw Verb = "withdraw"
)

const (
	binding     Phase = "binding" // the claims to the object that was decided for
	withdrawing Phase = "withdrawing"

	jobConvert  job = "convert"
	jobBind     job = "bind"
	jobWithdraw job = "withdraw"
	jobRecord   job = "record"
)

// central says that a record is this operation's decision.
func (m *Machine) central() bool { return m.Op.Central && m.Op.Action == Add }

// Undecided says that o is a claim that only its record can judge.
func (o Object) Undecided() bool {
	return o.Claimed && o.Claim.Record != "" && o.Stage == Reserved && (o.Claim.Primary || o.Bound == Ref{})
}

// Sibling says that x is a claim of the operation that y came from.
func (o Object) Sibling(y Object) bool {
	return o.Claimed && o.Claim.Record != "" && o.Claim.Record == y.Claim.Record && o.Claim.Operation == y.Claim.Operation
}

func (m *Machine) decided(i int, d Decision) {
	m.Decision = d
	m.Record.Primary = d.Of
	m.Record.Committed = true
	m.finish(i)
}

// ours says that o is what an abort of this operation takes down. A claim that
// was bound is not: its record was committed.
func (m *Machine) ours(o Object) bool {
	if m.central() {
		return o.Undecided() && o.Claim.Record == m.Decision.UID
	}
	return !o.Primary(m.Op.Mode)
}
