// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// SecondaryOf returns the object that an add creates in a peer which is not its target. op is the
// add, and primary refers to its object in the target.
func SecondaryOf(op Operation, peer string, primary Ref) Object {
	m := New(op)
	m.Record.Primary = primary
	return addJob{m}.claim(peer)
}
