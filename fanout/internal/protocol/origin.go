// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Origin identifies the ring in which a log entry was written.
type Origin struct {
	Ring     string            `json:"ring,omitempty"`     // the ring's ID; empty if the ring had none
	Clusters map[string]string `json:"clusters,omitempty"` // the UID of each member's cluster
}

// Known reports whether o identifies a ring.
func (o Origin) Known() bool { return o.Ring != "" || len(o.Clusters) > 0 }

// Foreign reports whether o and now identify different rings. If both have a ring ID, the IDs
// decide (see renamed). Else the members decide: the rings are the same if a member has the same
// cluster in both, or if the two have no member name in common, since members come and go.
func (o Origin) Foreign(now Origin) bool {
	if o.Ring != "" && now.Ring != "" {
		return o.Ring != now.Ring && !o.renamed(now)
	}
	common := false
	for peer, uid := range o.Clusters {
		switch is, listed := now.Clusters[peer]; {
		case !listed:
		case is == uid:
			return false
		default:
			common = true
		}
	}
	return common
}

// renamed reports whether o's ring has another ID now: the CRDs of the first release drop the ID,
// and a later sweep makes a new one. All clusters of o must be members now, under the same names,
// and o must have several: a single cluster may have joined another ring.
func (o Origin) renamed(now Origin) bool {
	for peer, uid := range o.Clusters {
		if now.Clusters[peer] != uid {
			return false
		}
	}
	return len(o.Clusters) > 1
}

// OriginOf returns the Origin of the ring of the peers whose Standing in judged is Believed. Its
// clusters are those of the members that the PeerSets of these peers list.
func OriginOf(peers map[string]Presence, judged map[string]Identification) Origin {
	o := Origin{Clusters: map[string]string{}}
	for peer, p := range peers {
		if judged[peer].Standing != Believed || !p.Set.current() {
			continue
		}
		if p.Set.Ring != "" {
			o.Ring = p.Set.Ring
		}
		for _, m := range p.Set.Members {
			if _, own := judged[m.Peer]; !own || m.Peer == peer {
				o.Clusters[m.Peer] = m.UID
			}
		}
	}
	return o
}
