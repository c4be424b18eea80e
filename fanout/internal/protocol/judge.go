// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// verdict is the judgement of a secondary by the state of its primary.
type verdict string

const (
	// dead: the primary is gone and cannot come back. Delete the secondary.
	dead verdict = "dead"
	// pending: its primary may yet be committed.
	pending verdict = "pending"
	// fenced: its primary is Reserved and is being deleted; wait.
	fenced verdict = "fenced"
	// owned: its primary is committed, or is an object without a claim.
	owned verdict = "owned"
	// leaving: the removal of its primary is committed. Delete the secondary.
	leaving verdict = "leaving"
	// moved: its primary has moved, or is moving, to another peer. Follow it.
	moved verdict = "moved"
	// undecidable: the replies that were read do not decide about the secondary. Touch nothing.
	undecidable verdict = "undecidable"
	// lost: the secondary proves a commit, and its primary's peer has no committed primary. Touch
	// nothing; report the secondary.
	lost verdict = "lost"
	// stray: its primary cannot be read, because the primary's peer is unreachable or not
	// configured. Read the PeerSet of the secondary's own peer.
	stray verdict = "stray"
)

// judge returns the verdict on secondary x. y is the reply to a read of x's primary that
// began after x had been read. (If y were older than x, a healthy guard could be judged
// dead.)
func judge(mode Mode, x Object, y Reply) verdict {
	gone := y.Code == NotFound || y.Code == OK && y.Object.UID != x.Of(mode).UID
	switch {
	case x.yielded(mode) && x.Home.frozen() && x.Stage == Reserved && gone:
		// A force-remove elected a new home, which is gone. x names it and was never Active.
		return dead
	case x.yielded(mode):
		// The replica that x names may not be home yet: do not delete x.
		return moved
	case gone:
		return x.contradicted(mode, dead)
	case y.Code != OK:
		return stray
	default:
		return judgeBy(mode, x, y.Object)
	}
}

// judgeBy returns the verdict on secondary x by its primary o.
func judgeBy(mode Mode, x, o Object) verdict {
	switch {
	case !o.Claimed:
		return owned
	case o.Pending():
		return x.contradicted(mode, pending)
	case o.Stage == Reserved:
		return x.contradicted(mode, fenced)
	case mode == Everywhere && !o.Primary(mode) && o.term() > x.term():
		return moved
	case mode == Everywhere && !o.Primary(mode):
		// A force-remove has elected o, and makes it home once all replicas name o.
		return undecidable
	case o.Leaving():
		return leaving
	default:
		return owned
	}
}

// judgeStray returns the verdict on secondary x if its primary cannot be read. r is the
// reply to a read of the PeerSet of x's own peer.
func judgeStray(mode Mode, x Object, r Reply) verdict {
	switch {
	case r.Code != OK, !r.PeerSet.Gone(x.Of(mode).Peer):
		return undecidable
	case mode == Everywhere && x.Stage == Active && r.PeerSet.Change.ID != "" && !r.PeerSet.Change.Over:
		// A membership change is under way. If it is the force-remove of the home's peer, it gives an
		// Active replica another home before it ends.
		return undecidable
	default:
		return dead
	}
}
