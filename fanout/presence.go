// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// PeerIdentity is the identity that the cluster behind a configured peer reports.
type PeerIdentity struct {
	// UID is the UID of the cluster's namespace kube-system; empty if reading it is forbidden.
	UID types.UID
	// Set is the cluster's PeerSet; nil if the cluster has none.
	Set *v1alpha1.PeerSet
	// Problem is why the Coordinator does not use the cluster's answers: a *WrongPeerError, a
	// *ReturnedError, or an error that wraps region.ErrIdentityUnknown or region.ErrSameCluster;
	// nil if it uses them.
	Problem error
}

// Identity returns the part of c that reports which ring the peers and the log belong to. It does
// no I/O.
func (c *Coordinator) Identity() *Identity { return c.identity }

// Identity reports which ring the configured peers and the log belong to. Coordinator.Identity
// returns it. It is safe for concurrent use.
type Identity struct {
	opts     *Options
	clusters *clusters
	entries  *entries
	surveyor *surveyor
	kinds    *kinds

	logOurs atomic.Bool // the open operations of the log are of this ring
}

// Peers reads the identities of all configured peers now and judges them together, as each
// operation does. A peer that does not answer has Err set. It writes nothing and blocks until
// all peers have answered or timed out.
func (id *Identity) Peers(ctx context.Context) (region.Results[PeerIdentity], error) {
	if _, err := id.clusters.peers(ctx); err != nil {
		return region.Results[PeerIdentity]{}, err
	}
	type answer struct {
		meeting
		err error
	}
	asked, _ := region.Each(ctx, id.clusters.directory, "identify", region.BestEffort(), func(ctx context.Context, conn *region.Conn) (answer, error) {
		m, err := within(ctx, id.opts.CallTimeout, func(ctx context.Context) (meeting, error) { return id.clusters.ask(ctx, conn) })
		return answer{m, explain(conn.Peer(), "identify", err)}, nil // not as an error of Each, which would drop the UID
	})
	var met []meeting
	for o := range asked.All() {
		if o.Err == nil && o.Value.err == nil {
			met = append(met, o.Value.meeting)
		}
	}
	id.clusters.identities.note(met...)
	named := map[types.UID][]int{} // indexes of the outcomes without a problem, by cluster
	var outcomes []region.Outcome[PeerIdentity]
	for o := range asked.All() {
		out := region.Outcome[PeerIdentity]{Peer: o.Peer, Err: cmp.Or(o.Err, o.Value.err)}
		if conn, err := id.clusters.directory.Conn(o.Peer); err != nil {
			out.Err = err
		} else if out.Err == nil {
			out.Value = id.clusters.identities.of(conn)
			out.Value.Problem = explain(o.Peer, "identify", out.Value.Problem)
		} else {
			out.Value.UID = o.Value.uid // known if only the PeerSet could not be read
		}
		if uid := out.Value.UID; uid != "" && out.Value.Problem == nil {
			named[uid] = append(named[uid], len(outcomes))
		}
		outcomes = append(outcomes, out)
	}
	for uid, at := range named {
		for i := 1; i < len(at); i++ {
			problem := sameCluster(outcomes[at[0]].Peer, outcomes[at[i]].Peer, uid)
			outcomes[at[0]].Value.Problem, outcomes[at[i]].Value.Problem = problem, problem
		}
	}
	return region.ResultsOf("identify", outcomes...), nil
}

// Recognize returns nil if the Coordinator uses the answers of a configured peer: its cluster is
// the one that the ring knows under its name, or belongs to no ring yet. Otherwise the error wraps
// a *WrongPeerError, a *ReturnedError or region.ErrIdentityUnknown, or is why the peer does not
// answer. A program that reads peers from its own caches calls Recognize before it acts on an
// object's absence. Recognize sends requests only if the cluster was not identified yet or was
// rejected before, and blocks for at most Options.CallTimeout.
func (id *Identity) Recognize(ctx context.Context, peer region.PeerName) error {
	_, err := id.clusters.trusted(ctx, peer)
	return explain(peer, "identify", err)
}
