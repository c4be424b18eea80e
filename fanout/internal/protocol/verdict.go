// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Verdict is the judgement of a secondary.
type Verdict = verdict

// The verdicts, for reports.
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

// Judge returns the verdict of a machine on secondary x. primary is the reply to a read of
// x's primary that began after x had been read. set is the reply to a read of the PeerSet
// of x's own peer, which decides if the primary could not be read.
func Judge(mode Mode, x Object, primary, set Reply) Verdict {
	v := judge(mode, x, primary)
	if v == stray {
		return judgeStray(mode, x, set)
	}
	return v
}
