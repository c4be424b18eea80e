// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// The first release decided adds by a record in a central log. The claims of such an add (Reserved
// objects that hold the name) are in all peers and name the record. No machine deletes or writes a
// claim while its record is pending. So at the commit all claims exist, and they stay. This release
// starts no such add: it finishes or undoes the adds that processes of the first release left or
// still run.

// Decision is the record in a central log that decides an add.
type Decision struct {
	UID, RV   string
	Committed bool
	Of        Ref // once committed: the primary
	// Taken: another coordinator has taken over the operation, and withdraws the record if the
	// record is pending. The coordinator that reads Taken leaves the record alone.
	Taken bool
}

// Verbs on records. Command.Record is the ID of the operation.
const (
	// ReadRecord reads a record, from a quorum.
	ReadRecord Verb = "read-record"
	// Withdraw aborts an add: it ends the pending record that has the command's UID and RV. Any process may
	// send it.
	Withdraw Verb = "withdraw"
)

const (
	binding     Phase = "binding" // binding the claims to the primary in the record
	withdrawing Phase = "withdrawing"

	taskConvert  task = "convert"
	taskBind     task = "bind"
	taskWithdraw task = "withdraw"
	taskRecord   task = "record"
)

// central reports whether a record decides this operation.
func (m *Machine) central() bool { return m.Op.Central && m.Op.Action == Add }

// Undecided reports whether o is a claim of the first release of which only the record shows
// whether it is committed.
func (o Object) Undecided() bool {
	return o.Claimed && o.Claim.Record != "" && o.Stage == Reserved && (o.Claim.Primary || o.Bound == Ref{})
}

// Sibling reports whether o is a claim of the operation that created y.
func (o Object) Sibling(y Object) bool {
	return o.Claimed && o.Claim.Record != "" && o.Claim.Record == y.Claim.Record && o.Claim.Operation == y.Claim.Operation
}

// decided stores d, the decision of a committed record.
func (m *Machine) decided(d Decision) {
	m.Decision = d
	m.Record.Primary = d.Of
	m.Record.Committed = true
}

// ours reports whether an abort of this operation deletes its reservation o. In an add of the first
// release, o must be an undecided claim. A bound claim, which names the committed primary, stays,
// because its record was committed.
func (j abortJob) ours(o Object) bool {
	m := j.m
	if m.central() {
		return o.Undecided() && o.Claim.Record == m.Decision.UID
	}
	return !o.Primary(m.Op.Mode)
}
