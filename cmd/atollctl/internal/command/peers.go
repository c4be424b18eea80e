// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

var peerSets = fanoutv1alpha1.GroupVersion.WithResource("peersets")

func (s *session) peersCommand() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "peers",
		Short: "Show all peers: address, identity, health and membership",
		Long: `Show all peers: address, identity, health and membership. A peer is Healthy if its
cluster is the one that the ring knows under its name. Otherwise the exit code is 2,
and the peer is:

  WrongCluster     another cluster
  SameCluster      a cluster that two names lead to
  Restored         restored from an older state ("peer comeback" brings it back)
  IdentityUnknown  a cluster whose identity the credentials may not read

With --check it does the same as the command "doctor": it checks everything that
commands need of each peer, and changes nothing.

` + checkHelp,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			if check {
				return s.check(ctx)
			}
			d, err := s.connect(ctx)
			if err != nil {
				return err
			}
			results, problems := s.outlooks(ctx, read(ctx, d, "look at peer", inspect))
			l := listing{columns: []string{"Name", "Server", "UID", "Health", "State", "Members", "Epoch", "Change"}}
			for o := range results.All() {
				conn, err := d.Conn(o.Peer)
				if err != nil {
					return err
				}
				l.items = append(l.items, peerItem(conn, o))
			}
			if err := s.print(l); err != nil {
				return err
			}
			unread := s.unread(results.Err())
			if problems != nil {
				if unread != nil {
					s.warn("%v", unread)
				}
				return s.unread(problems)
			}
			if unread != nil {
				return unread
			}
			return s.lonely(results)
		}),
	}
	c.Flags().BoolVar(&check, "check", false, "check each peer, and print its faults and their remedies")
	return c
}

// outlook is the state of a peer: the UID of its cluster, its PeerSet, and the problem with its
// identity.
type outlook struct {
	uid     types.UID
	state   string
	set     *fanoutv1alpha1.PeerSet
	problem error // why the peer is not the right cluster; may be nil
}

// outlooks compares the identities of the clusters with those in the PeerSets. It returns seen,
// with the field problem set for each peer whose identity is wrong, unknown, or that of a restored
// peer. problems joins these errors; it is nil if no peer has a problem.
func (s *session) outlooks(ctx context.Context, seen region.Results[outlook]) (results region.Results[outlook], problems error) {
	judged := map[region.PeerName]error{}
	err := s.observe(ctx, func(c *fanout.Coordinator) error {
		identities, err := c.Identity().Peers(ctx)
		for o := range identities.All() {
			judged[o.Peer] = o.Value.Problem
		}
		return err
	})
	if err != nil {
		s.warn("the identities of the clusters were not compared: %s", oneLine(err))
	}
	var all []region.Outcome[outlook]
	var wrong []region.Outcome[struct{}]
	for o := range seen.All() {
		o.Value.problem = judged[o.Peer]
		all = append(all, o)
		wrong = append(wrong, region.Outcome[struct{}]{Peer: o.Peer, Err: o.Value.problem})
	}
	return region.ResultsOf("look at peer", all...), region.ResultsOf("identify", wrong...).Err()
}

// health returns one word: "Healthy" if the peer has no problem, otherwise the kind of the problem.
func (o outlook) health() string {
	switch {
	case o.problem == nil:
		return region.Healthy.String()
	case is(o.problem, fanout.ErrWrongPeer):
		return "WrongCluster"
	case is(o.problem, region.ErrSameCluster):
		return "SameCluster"
	case is(o.problem, fanout.ErrReturned):
		return "Restored"
	default:
		return "IdentityUnknown"
	}
}

const (
	stateNone  = "None"  // the peer has no PeerSet
	stateNoCRD = "NoCRD" // the peer does not serve the type PeerSet
)

func inspect(ctx context.Context, c *region.Conn) (outlook, error) {
	uid, err := c.UID(ctx)
	if err != nil && !is(err, region.ErrIdentityUnknown) {
		return outlook{}, err
	}
	obj, err := c.Dynamic().Resource(peerSets).Get(ctx, fanoutv1alpha1.PeerSetName, metav1.GetOptions{})
	switch {
	case noSuchType(err):
		return outlook{uid: uid, state: stateNoCRD}, nil
	case apierrors.IsNotFound(err):
		return outlook{uid: uid, state: stateNone}, nil
	case err != nil:
		return outlook{}, err
	}
	set := &fanoutv1alpha1.PeerSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, set); err != nil {
		return outlook{}, err
	}
	return outlook{uid: uid, state: string(set.Spec.Self.State), set: set}, nil
}

func peerItem(conn *region.Conn, o region.Outcome[outlook]) item {
	name := string(o.Peer)
	server := "-"
	if config, err := conn.StreamConfig(); err == nil {
		server = config.Host
	}
	fields := map[string]any{"server": server}
	if o.Err != nil {
		fields["health"], fields["error"] = region.Unhealthy.String(), oneLine(o.Err)
		return item{
			cells:  []any{name, server, "-", region.Unhealthy.String(), stageUnknown, "-", "-", "-"},
			object: object("Peer", name, fields),
		}
	}
	members, epoch, change := "-", "-", "-"
	if set := o.Value.set; set != nil {
		var names []string
		var list []any
		for _, m := range set.Spec.Members {
			names = append(names, m.Peer)
			list = append(list, map[string]any{"peer": m.Peer, "uid": string(m.UID), "state": string(m.State)})
		}
		if set.Spec.Ring != "" {
			fields["ring"] = set.Spec.Ring
		}
		members, epoch = or(strings.Join(names, ",")), fmt.Sprint(set.Spec.Epoch)
		fields["members"], fields["epoch"] = list, set.Spec.Epoch
		if c := set.Spec.Change; c != nil {
			change = fmt.Sprintf("%s of %s", c.Kind, c.Peer)
			fields["change"] = map[string]any{"id": c.ID, "kind": c.Kind, "peer": c.Peer, "coordinator": c.Coordinator}
		}
	}
	fields["uid"], fields["health"], fields["state"] = string(o.Value.uid), o.Value.health(), o.Value.state
	if o.Value.problem != nil {
		fields["error"] = oneLine(o.Value.problem)
	}
	return item{
		cells:  []any{name, server, or(string(o.Value.uid)), o.Value.health(), o.Value.state, members, epoch, change},
		object: object("Peer", name, fields),
	}
}

// lonely warns of peers that belong to no ring yet.
func (s *session) lonely(results region.Results[outlook]) error {
	for o := range results.All() {
		switch o.Value.state {
		case stateNoCRD:
			s.warn("peer %s lacks the types of Atoll: run %q", o.Peer, s.program+" install-crds")
		case stateNone:
			s.warn("peer %s has no PeerSet: run %q", o.Peer, s.program+" peer init")
		}
	}
	return nil
}

func (s *session) peerCommand() *cobra.Command {
	c := &cobra.Command{Use: "peer", Short: "Make peers a ring"}
	c.AddCommand(&cobra.Command{
		Use:   "init",
		Short: "Write the first PeerSet of every peer, which names all of them",
		Long: `Write the first PeerSet of every peer, which names all of them. Run it once, with
all peers of the ring. It may be repeated. It is refused if a peer belongs to another
ring.`,
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			err := s.observe(ctx, func(c *fanout.Coordinator) error { return c.InitPeers(ctx) })
			if err != nil {
				return err
			}
			results := read(ctx, s.peers.Directory, "look at peer", inspect)
			l := listing{columns: []string{"Name", "State", "Members"}}
			for o := range results.All() {
				if o.Err != nil {
					continue
				}
				conn, err := s.peers.Conn(o.Peer)
				if err != nil {
					return err
				}
				it := peerItem(conn, o)
				it.cells = []any{it.cells[0], it.cells[4], it.cells[5]}
				l.items = append(l.items, it)
			}
			if err := s.print(l); err != nil {
				return err
			}
			return s.unread(results.Err())
		}),
	})
	c.AddCommand(s.peerChanges()...)
	return c
}

// noSuchType reports whether err is a peer's response for a type that the peer does not serve. Such
// a response names no object, or it is no Status: client-go then adds the cause
// UnexpectedServerResponse.
func noSuchType(err error) bool {
	status, ok := find[*apierrors.StatusError](err)
	if !ok || !apierrors.IsNotFound(status) {
		return false
	}
	details := status.ErrStatus.Details
	if details == nil || details.Name == "" {
		return true
	}
	for _, cause := range details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}
