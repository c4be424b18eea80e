// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/region"
)

// allNamed returns an error if the ring has members that the flags do not name, because the command
// did not read those peers. It ignores a peer whose PeerSet cannot be read.
func (s *session) allNamed(ctx context.Context) error {
	var differ []string
	for o := range read(ctx, s.peers.Directory, "look at peer", inspect).All() {
		if o.Err != nil || o.Value.set == nil {
			continue
		}
		var unnamed []string
		for _, m := range o.Value.set.Spec.Members {
			if _, err := s.peers.Conn(region.PeerName(m.Peer)); err != nil {
				unnamed = append(unnamed, m.Peer)
			}
		}
		if len(unnamed) > 0 {
			slices.Sort(unnamed)
			differ = append(differ, fmt.Sprintf("peer %s has a PeerSet in which %s is a member and not configured", o.Peer, strings.Join(unnamed, ", ")))
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return badInput("name all peers that the PeerSets list: the others were not read", "configured peers and PeerSet differ: %s", strings.Join(differ, "; "))
}
