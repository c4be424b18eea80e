// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

// Decision is the decision in a record of the first release. In that release, an entry of a shared log could be the
// commit point of an add: such an entry was undecided at first, and then either decided for one object or ended.
// Entries of [Log.Begin] have no decision.
type Decision struct {
	ID      string // of the entry
	UID     string // of this incarnation of the entry: claims refer to it, and a later entry with the same ID has another UID
	Version string // as Entry.Version
	Owner   string // the coordinator that works on the entry
	Decided bool
	// Target and TargetUID name the decided object and its location.
	Target, TargetUID string
}

// Validate returns a [*FieldError] if the Entry breaks a rule that all Logs share.
func (e Entry) Validate() error { return e.validate() }
