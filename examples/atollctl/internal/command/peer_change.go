// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

func (s *session) peerChanges() []*cobra.Command {
	var (
		by    string
		never bool
	)
	join := s.peerChange("join", "Make a peer a member of the ring", `Make a peer a member of the ring that the other named peers are. It gets every
Account and guards every other name. A peer that was a member before is
quarantined first, and what it holds is judged against the ring. Name all members
and the peer. It may be repeated; a killed run is gone on with by the next one.`, (*fanout.Coordinator).Join)
	leave := s.peerChange("leave", "Take a peer out of the ring that answers", `Take a peer out of the ring. It is refused, and the ServiceClusters are named,
while any of them lives in the peer. Accounts that have their home there get it in
another peer. What the peer holds of others goes last.`, (*fanout.Coordinator).Leave)
	comeback := s.peerChange("comeback", "Bring a member back that was restored from a backup", `Bring a member back whose store was restored from an older state. It is quarantined,
and what it holds counts only as far as the other members bear it out. Accounts that it
has forgotten get another home. ServiceClusters that it has forgotten are printed: their
names stay held until "servicecluster release". If it holds objects that were removed
since, they are named and it stays in quarantine: delete them there and run this again.`, (*fanout.Coordinator).Comeback)
	comeback.Aliases = []string{"restore"}
	force := s.peerChange("force-remove", "Take a peer out of the ring that will never answer again", `Take a peer out of the ring that is lost for ever. What it owned is free for
others; what only it knew is lost. A coordinator that still reaches the peer may
add objects there that no other peer knows of: be sure that it is gone. The peer
need not be named.`, func(c *fanout.Coordinator, ctx context.Context, peer region.PeerName) (*fanout.Change, error) {
		if !never {
			return nil, badInput("add --i-know-it-never-returns once you are sure", "%s is taken out of the ring for ever, with what only it knows", peer)
		}
		if by == "" {
			return nil, badInput("add --by with your name", "nobody answers for giving %s up", peer)
		}
		return c.ForceRemove(ctx, peer, fanout.ForceRemoveOptions{By: by})
	})
	force.Flags().BoolVar(&never, "i-know-it-never-returns", false, "required: the peer is lost for ever")
	force.Flags().StringVar(&by, "by", "", "required: `who` says so; it is kept in every PeerSet")
	return []*cobra.Command{join, leave, comeback, force}
}

func (s *session) peerChange(name, short, long string, f func(*fanout.Coordinator, context.Context, region.PeerName) (*fanout.Change, error)) *cobra.Command {
	return &cobra.Command{
		Use:   name + " NAME",
		Short: short,
		Long:  long,
		Args:  cobra.ExactArgs(1),
		RunE: s.run(func(ctx context.Context, args []string) error {
			peer := region.PeerName(args[0])
			if _, err := s.connect(ctx); err != nil {
				return err
			}
			if name != "force-remove" {
				if err := s.peers.known("NAME", args[0]); err != nil {
					return err
				}
			}
			return s.coordinate(ctx, func(c *fanout.Coordinator) error {
				change, err := f(c, ctx, peer)
				if err != nil {
					return err
				}
				return s.printChange(change)
			})
		}),
	}
}

// printChange prints what the peers call themselves since.
func (s *session) printChange(change *fanout.Change) error {
	l := listing{columns: []string{"Name", "State", "Change", "Result"}}
	result := string(change.State)
	if change.AlreadyDone {
		result = "AlreadyDone"
	}
	for o := range change.Peers.All() {
		state := string(o.Value)
		if o.Err != nil {
			state = stageUnknown
		}
		fields := map[string]any{"state": state}
		cells := []any{string(o.Peer), state, "-", "-"}
		if o.Peer == change.Peer {
			cells[2], cells[3] = string(change.Kind), result
			fields["change"], fields["result"] = string(change.Kind), result
		}
		l.items = append(l.items, item{cells: cells, object: object("Peer", string(o.Peer), fields)})
	}
	for _, o := range change.Lost {
		s.warn("%s %s is lost (UID %s, added by operation %s): %s had forgotten it; its name stays held until it is released", o.Kind.Kind, o.Key, o.UID, o.Operation, change.Peer)
	}
	for _, o := range change.Left {
		s.warn("%s %s stays in %s, without a claim", o.Resource.Resource, o.Key, o.Peer)
	}
	return s.print(l)
}
