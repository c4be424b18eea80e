// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// SecondaryOf is what an add creates in peer once its primary stands as of.
func SecondaryOf(op Operation, peer string, of Ref) Object {
	m := New(op)
	m.Record.Primary = of
	return m.claim(peer)
}
