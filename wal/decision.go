// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

// Decision is what a record of the first release decides about its operation. There an entry of a shared log could be
// the commit point of an add: such an entry is undecided at first, and then either decided for one object or ended.
// Entries that [Log.Begin] makes decide nothing.
type Decision struct {
	ID      string // of the entry
	UID     string // of this incarnation of it, by which claims name it: no later entry of the same ID has it
	Version string // as Entry.Version
	Owner   string // who works on it
	Decided bool
	// Target and TargetUID are where the object is that was decided for, and which.
	Target, TargetUID string
}

// Validate says what of an Entry no Log takes, as a [*FieldError].
func (e Entry) Validate() error { return e.validate() }
