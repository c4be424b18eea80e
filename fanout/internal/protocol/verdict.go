// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Verdict is what a secondary turns out to be.
type Verdict = verdict

// The verdicts, for those who tell people of them.
const (
	VerdictDead        = dead
	VerdictPending     = pending
	VerdictFenced      = fenced
	VerdictOwned       = owned
	VerdictLeaving     = leaving
	VerdictMoved       = moved
	VerdictUndecidable = undecidable
	VerdictLost        = lost
)

// Judge says what secondary x is, as a machine does, from what was read of its
// primary after x was, and, if that could not be read, from the PeerSet of the
// peer in which x stands.
func Judge(mode Mode, x Object, primary, set Reply) Verdict {
	v := judge(mode, x, primary)
	if v == stray {
		return judgeStray(mode, x, set)
	}
	return v
}
