// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// stage is a world whose processes a test runs by hand.
type stage struct {
	*testing.T
	*world
}

func (s stage) of(proc int) func(message) bool { return func(m message) bool { return m.proc == proc } }

// run delivers the messages of a process until the condition holds or no message is left.
func (s stage) run(proc int, until func() bool) {
	s.Helper()
	for slices.ContainsFunc(s.net, s.of(proc)) && !until() {
		s.deliver(slices.IndexFunc(s.net, s.of(proc)))
	}
	require.Empty(s, s.check())
}

// end delivers the messages of a process until none is left.
func (s stage) end(proc int) {
	s.Helper()
	s.run(proc, func() bool { return false })
}

func (s stage) crash(proc int) {
	s.do(action{actCrash, uint8(proc), 0})
	s.net = slices.DeleteFunc(s.net, s.of(proc))
}
