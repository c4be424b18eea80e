// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// ringManifest returns the spec of a PeerSet as coordinators write it.
func ringManifest(s PeerSet) map[string]any {
	member := func(m Member) map[string]any {
		return map[string]any{"peer": m.Peer, "uid": m.UID, "state": m.State}
	}
	spec := map[string]any{"self": member(s.Self), "epoch": s.Epoch}
	var members, departed []any
	for _, m := range s.Members {
		members = append(members, member(m))
	}
	for _, d := range s.Departed {
		departed = append(departed, map[string]any{"peer": d.Peer, "how": d.How, "at": "2026-01-02T03:04:05Z"})
	}
	spec["members"] = members
	if departed != nil {
		spec["departed"] = departed
	}
	if s.Ring != "" {
		spec["ring"] = s.Ring
	}
	if c := s.Change; c.ID != "" {
		spec["change"] = map[string]any{"id": c.ID, "kind": string(c.Kind), "peer": c.Peer, "anchor": c.Anchor, "over": c.Over, "heartbeat": c.Heartbeat}
	}
	return spec
}

// ringStarts returns PeerSets with and without a change and a ring ID.
func ringStarts() []PeerSet {
	a, b := Member{"a", "ka", peerActive}, Member{"b", "kb", peerActive}
	free := PeerSet{UID: "sa", RV: "r1", Self: a, Members: []Member{a, b}, Epoch: 3}
	held := free
	held.Change = Slot{ID: "j", Kind: Join, Peer: "c", Anchor: "a"}
	ring := held
	ring.Ring = "ring"
	over := ring
	over.Change.Over = true
	over.Departed = []Departure{{Peer: "d", How: "Forced"}}
	return []PeerSet{free, held, ring, over}
}

// ringNeighbours returns s with at most two edits, each time with four different epochs.
func ringNeighbours(s PeerSet) []PeerSet {
	edits := []func(*PeerSet){
		func(*PeerSet) {},
		func(s *PeerSet) { s.Self.Peer = "b" },
		func(s *PeerSet) { s.Self.UID = "kx" },
		func(s *PeerSet) { s.Self.State = peerLeaving },
		func(s *PeerSet) { *s = s.with(Member{"c", "kc", peerJoining}) },
		func(s *PeerSet) { *s = s.without(Departure{Peer: "b", How: "Left"}) },
		func(s *PeerSet) { s.Ring = "" },
		func(s *PeerSet) { s.Ring = "other" },
		func(s *PeerSet) { s.Change = Slot{} },
		func(s *PeerSet) { s.Change = Slot{ID: "k", Kind: Leave, Peer: "b", Anchor: "a"} },
		func(s *PeerSet) { s.Change.Heartbeat++ },
		func(s *PeerSet) { s.Change.Over = true },
	}
	var near []PeerSet
	for i, e := range edits {
		for _, f := range edits[i:] {
			for _, epoch := range []int64{-1, 0, 1, 2} {
				n := s
				e(&n)
				f(&n)
				n.Epoch += epoch
				if n.Change.ID == "" {
					n.Change = Slot{}
				}
				near = append(near, n)
			}
		}
	}
	return near
}
