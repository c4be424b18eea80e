// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

// Decision is the decision in a record of the first release. In that release, an entry of a shared log could be the
// commit point of an add: such an entry was undecided at first, and then either decided for one object or ended.
// Entries of [Log.Begin] have no decision.
type Decision struct {
	ID      string // of the entry
	UID     string // of this incarnation of the entry: claims refer to this UID, and a later entry with the same ID has another one
	Version string // as Entry.Version
	Owner   string // the coordinator that works on the entry
	Decided bool
	// Target is the peer of the decided object, and TargetUID is the object's UID. Both are empty if Decided is false.
	Target, TargetUID string
}

// Validate returns a [*FieldError] if e has no ID, if a field exceeds its limit, or if a text field is not valid UTF-8
// without NUL.
func (e Entry) Validate() error { return e.validate() }
