// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// verdict is what a secondary turns out to be.
type verdict string

const (
	// dead for ever: delete it.
	dead verdict = "dead"
	// pending: its primary may yet be committed.
	pending verdict = "pending"
	// fenced: somebody fences its primary; wait.
	fenced verdict = "fenced"
	// owned: its primary is committed, or a person's object.
	owned verdict = "owned"
	// leaving: its primary is being removed; it is to go.
	leaving verdict = "leaving"
	// moved: its primary has yielded to a home of a higher term.
	moved verdict = "moved"
	// undecidable: touch nothing.
	undecidable verdict = "undecidable"
	// lost: it proves a commit that its primary's peer knows nothing of. Touch
	// nothing; report it.
	lost verdict = "lost"
	// stray: its primary's peer is not configured here or does not answer; ask
	// the PeerSet of the peer in which it stands.
	stray verdict = "stray"
)

// judge says what secondary x is, from the reply to a read of its primary's
// name in its primary's peer that was begun after x had been read. (Were y
// older than x, a healthy guard could be taken for a dead one.)
func judge(mode Mode, x Object, y Reply) verdict {
	switch {
	case x.yielded(mode) && x.frozen() && x.Stage == Reserved && (y.Code == NotFound || y.Code == OK && y.Object.UID != x.Of(mode).UID):
		// The heir that it waits for is gone, and it was never in force itself.
		return dead
	case x.yielded(mode):
		// Its home may not know yet that it is one.
		return moved
	case y.Code == NotFound:
		return x.contradicted(mode, dead)
	case y.Code != OK:
		return stray
	}
	o := y.Object
	switch {
	case o.UID != x.Of(mode).UID:
		return x.contradicted(mode, dead)
	case !o.Claimed:
		return owned
	case o.Pending():
		return x.contradicted(mode, pending)
	case o.Stage == Reserved:
		return x.contradicted(mode, fenced)
	case mode == Everywhere && !o.Primary(mode) && o.term() > x.term():
		return moved
	case mode == Everywhere && !o.Primary(mode):
		// It is to be home once those that replace a peer which is gone have
		// reached every replica.
		return undecidable
	case o.Leaving():
		return leaving
	default:
		return owned
	}
}

// judgeStray says what secondary x is whose primary cannot be read, from the
// reply to a read of the PeerSet of the peer in which x stands.
func judgeStray(mode Mode, x Object, r Reply) verdict {
	switch {
	case r.Code != OK, !r.PeerSet.Gone(x.Of(mode).Peer):
		return undecidable
	case mode == Everywhere && x.Stage == Active && r.PeerSet.Change.ID != "" && !r.PeerSet.Change.Over:
		// A replica in force outlives its home: whoever removes the home's peer
		// gives it another one before the slot is free again.
		return undecidable
	default:
		return dead
	}
}
