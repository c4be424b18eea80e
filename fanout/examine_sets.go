// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"maps"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// examineSets compares the members' PeerSets, which may differ while a change is under way.
func (s survey) examineSets() []finding {
	e := &examination{survey: s}
	changes := s.changes()
	for _, c := range changes {
		e.report("membership", string(c.Peer), met{}, true, "%s of the peer is under way (change %s, coordinator %s): without a sign of life for one lease, any coordinator's Recover ends it (atollctl wal recover)",
			c.Kind, c.ID, orDefault(c.Coordinator, "unknown")).Kind = peerSetKind
	}
	if len(changes) > 0 {
		return e.findings
	}
	for _, peer := range slices.Sorted(maps.Keys(s.sets)) {
		set := s.sets[peer]
		if set.Self.State != "Active" {
			continue
		}
		want := active(set)
		for _, other := range want {
			theirs, ok := s.sets[other]
			if ok && !slices.Equal(active(theirs), want) {
				e.report("I11", peer, met{}, false, "it knows the members %s, %s knows %s",
					strings.Join(want, ", "), other, strings.Join(active(theirs), ", "))
			}
		}
	}
	return e.findings
}

func active(set protocol.PeerSet) []string {
	var names []string
	for _, m := range set.Members {
		if m.State == "Active" {
			names = append(names, m.Peer)
		}
	}
	slices.Sort(names)
	return names
}
