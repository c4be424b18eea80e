// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// SecondaryOf returns the object that add op creates in peer once its primary exists as of.
func SecondaryOf(op Operation, peer string, of Ref) Object {
	m := New(op)
	m.Record.Primary = of
	return addJob{m}.claim(peer)
}
