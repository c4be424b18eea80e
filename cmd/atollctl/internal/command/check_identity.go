// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// judgeIdentity judges the identity that the cluster behind a peer reported, together with those of
// the other peers. err is why the identity was not read.
func judgeIdentity(peer string, identity fanout.PeerIdentity, err error, c commands) finding {
	switch problem := identity.Problem; {
	case problem == nil && err != nil && identity.UID != "" && noSuchType(err):
		return passed(checkIdentity, "cluster %s, which belongs to no ring yet", identity.UID)
	case problem == nil && err != nil:
		return c.unknown(checkIdentity, err)
	case problem == nil && identity.UID == "":
		return passed(checkIdentity, "the user may not read the UID of the cluster; the ID of its ring identifies it")
	case problem == nil:
		return passed(checkIdentity, "cluster %s", identity.UID)
	case is(problem, fanout.ErrWrongPeer):
		return failed(checkIdentity, "correct the kubeconfig of the peer, or its name", "WrongCluster: %s", inner(problem))
	case is(problem, region.ErrSameCluster):
		return failed(checkIdentity, "name each cluster once", "SameCluster: %s", inner(problem))
	case is(problem, fanout.ErrReturned):
		return failed(checkIdentity, c.changing("peer", "comeback", peer), "Restored: %s", inner(problem))
	default:
		return failed(checkIdentity, c.rbac(), "IdentityUnknown: %s", inner(problem))
	}
}

// inner returns the text of err without the peer, the operation and the remedy around it, which the
// other columns show.
func inner(err error) string {
	if d, ok := find[*region.Diagnosis](err); ok {
		err = d.Err
	}
	if e, ok := errors.AsType[*region.Error](err); ok {
		err = e.Err
	}
	return oneLine(err)
}

// judgeReach judges the first request to a peer.
func judgeReach(server string, err error) finding {
	if err == nil {
		return passed(checkReach, "%s answers", server)
	}
	return finding{check: checkReach, status: statusFailed, code: codeOf(err), remedy: region.CauseOf(err).Remedy(), detail: withoutRemedy(err)}
}
