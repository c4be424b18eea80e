// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

// RescueOptions tune one Rescue.
type RescueOptions struct {
	// Identity is the coordinator, as in claims, whose operations are rescued. With a "*" at
	// its end it is a prefix. Zero means Options.Identity.
	Identity string
}

// Rescued is one operation that a Rescue found.
type Rescued struct {
	Trace
	// Did describes what the Rescue did.
	Did string
	// Left is set if objects of the operation are left.
	Left bool
	// Err is why the Rescue could not do everything; nil if it did.
	Err error
}

// RescueReport is the result of a Rescue.
type RescueReport struct {
	Identity string // the coordinator whose operations were rescued
	By       string // the Coordinator that rescued them
	From, To time.Time
	// Clusters are the peers that were read, each with the UID of its
	// kube-system namespace.
	Clusters map[region.PeerName]types.UID
	// Operations are the operations that were found, ordered by kind and name.
	Operations []Rescued
	// Unread lists all peers. Err is set for a peer that could not be read.
	Unread region.Results[struct{}]
}

// Complete reports whether every peer was read and no object of the operations is left.
func (r *RescueReport) Complete() bool {
	return r.Unread.Complete() && !slices.ContainsFunc(r.Operations, func(o Rescued) bool { return o.Left })
}

// Rescue rebuilds the open operations of a lost log from the claims in the peers, and settles
// them as Recover would: it deletes a reservation that shows no sign of life for one lease,
// with its secondaries, resumes a removal, and brings a committed object to every peer. It also
// settles each operation whose coordinator the claims do not name, such as an update. At the end
// Rescue reads the peers again and reports the remaining objects, such as a reservation that is
// alive. A peer that cannot be read is not an error: the report names it. Rescue needs no log,
// blocks, and is idempotent. It makes only changes that a sweep would make, too.
func (c *Coordinator) Rescue(ctx context.Context, opts RescueOptions) (*RescueReport, error) {
	report := &RescueReport{Identity: opts.Identity, By: c.opts.Identity, From: time.Now().UTC()}
	if report.Identity == "" {
		report.Identity = c.opts.Identity
	}
	found, unread, err := c.inspector.traces(ctx)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(t trace) bool { return !t.of(report.Identity) })
	errs := make([]error, len(found))
	var g errgroup.Group
	g.SetLimit(sweepers)
	for i, t := range found {
		g.Go(func() error {
			ctx, cancel := c.sweeper.forLease(ctx)
			defer cancel()
			_, errs[i] = c.sweeper.sweepTrace(ctx, t, lease)
			return nil
		})
	}
	_ = g.Wait()
	after, unreadAfter, err := c.inspector.traces(ctx)
	if err != nil {
		return nil, err
	}
	unreadAll(unread, unreadAfter)
	for i, t := range found {
		left := slices.ContainsFunc(after, t.same)
		report.Operations = append(report.Operations, Rescued{Trace: t.Trace, Did: t.did(left), Left: left, Err: errs[i]})
	}
	report.Unread = c.clusters.unread(unread)
	report.Clusters = c.clusters.clusters(ctx)
	maps.DeleteFunc(report.Clusters, func(p region.PeerName, _ types.UID) bool { return unread[string(p)] != nil })
	report.To = time.Now().UTC()
	return report, nil
}

// of reports whether the coordinator identity began the operation, or may have begun it because no
// claim names a coordinator.
func (t trace) of(identity string) bool {
	if prefix, ok := strings.CutSuffix(identity, "*"); ok {
		return t.Coordinator == "" || strings.HasPrefix(t.Coordinator, prefix)
	}
	return t.Coordinator == "" || t.Coordinator == identity
}

func (t trace) same(other trace) bool {
	return t.Operation == other.Operation && t.Kind == other.Kind && t.Key == other.Key && t.Action == other.Action
}

func (t trace) did(left bool) string {
	at := fmt.Sprintf(" in %s", t.Primary)
	switch {
	case t.State == InDoubt:
		return "nothing: " + string(t.Primary) + " does not answer"
	case t.State == Reserving && left:
		return "left its reservation" + at + ": it is alive, or could not be deleted"
	case t.State == Reserving:
		return "deleted its reservation" + at + ", and its objects in other peers"
	case t.State == Ended:
		return "deleted its leftovers"
	case t.Action == "remove" && left:
		return "resumed the removal" + at + ": it is not finished"
	case t.Action == "remove":
		return "ended the removal" + at
	case left:
		return "brought it to the peers that answer, from" + strings.TrimPrefix(at, " in")
	default:
		return "brought it to every peer, from" + strings.TrimPrefix(at, " in")
	}
}

func (cs *clusters) unread(errs map[string]error) region.Results[struct{}] {
	var outcomes []region.Outcome[struct{}]
	for p := range cs.directory.Snapshot().Peers() {
		outcomes = append(outcomes, region.Outcome[struct{}]{Peer: p.Name, Err: errs[string(p.Name)]})
	}
	return region.ResultsOf("read", outcomes...)
}

// clusters returns the cluster UIDs of the peers that answer.
func (cs *clusters) clusters(ctx context.Context) map[region.PeerName]types.UID {
	uids, _ := region.Each(ctx, cs.directory, "read identity", region.BestEffort(), func(ctx context.Context, conn *region.Conn) (types.UID, error) {
		return within(ctx, cs.opts.CallTimeout, conn.UID)
	})
	all := map[region.PeerName]types.UID{}
	for o := range uids.All() {
		if o.Err == nil {
			all[o.Peer] = o.Value
		}
	}
	return all
}
