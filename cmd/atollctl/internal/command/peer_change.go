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
	join := s.peerChange("join", "Make a peer a member of the ring", `Make a peer a member of the ring of the other named peers. It gets every Account, and
guards every other name. A peer that was a member before is quarantined first, and its
objects are judged against the ring. Name all members and the peer. The command may be
repeated; after a killed run, the next run resumes it.`, (*fanout.Coordinator).Join)
	leave := s.peerChange("leave", "Remove a reachable peer from the ring", `Remove a peer from the ring. This is refused, with their names, while ServiceClusters
exist in the peer. Accounts with their home there get another home. The peer's guards
and replicas are deleted last.`, (*fanout.Coordinator).Leave)
	comeback := s.peerChange("comeback", "Bring back a member that was restored from a backup", `Bring a member back whose store was restored from an older state. The member is
quarantined, and its objects count only if the other members confirm them. Accounts that
it has lost get another home. ServiceClusters that it has lost are printed: their names
stay held until "servicecluster release". If it has objects that were removed since the
backup, they are named and it stays in quarantine: delete them there and repeat the
command.`, (*fanout.Coordinator).Comeback)
	comeback.Aliases = []string{"restore"}
	force := s.peerChange("force-remove", "Remove a peer from the ring that is lost for ever", `Remove a peer from the ring that is lost for ever. The names that it owned become free,
and objects that only it had are lost. A coordinator that still reaches the peer may
add objects there that no other peer knows: make sure that the peer is gone. It need
not be named.`, func(c *fanout.Coordinator, ctx context.Context, peer region.PeerName) (*fanout.Change, error) {
		if !never {
			return nil, badInput("add --i-know-it-never-returns once you are sure", "%s is removed from the ring for ever, with the objects that only it has", peer)
		}
		if by == "" {
			return nil, badInput("add --by with your name", "no person is named who removes %s by force", peer)
		}
		return c.ForceRemove(ctx, peer, fanout.ForceRemoveOptions{By: by})
	})
	force.Flags().BoolVar(&never, "i-know-it-never-returns", false, "required: the peer is lost for ever")
	force.Flags().StringVar(&by, "by", "", "required: the `person` who decides this; stored in every PeerSet")
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

// printChange prints the state of each peer after a change of the membership. It warns of each
// object that the changed peer has lost, and of each object that stays in a peer without a claim.
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
		s.warn("%s %s is lost (UID %s, added by operation %s): %s has lost it; its name stays held until it is released", o.Kind.Kind, o.Key, o.UID, o.Operation, change.Peer)
	}
	for _, o := range change.Left {
		s.warn("%s %s stays in %s, without a claim", o.Resource.Resource, o.Key, o.Peer)
	}
	return s.print(l)
}
