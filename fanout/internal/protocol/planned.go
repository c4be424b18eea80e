// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// SecondaryOf returns the object that the add op creates in peer. The parameter of is the reference
// to the add's primary.
func SecondaryOf(op Operation, peer string, of Ref) Object {
	m := New(op)
	m.Record.Primary = of
	return addJob{m}.claim(peer)
}
