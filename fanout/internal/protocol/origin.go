// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Origin says which ring something was written in.
type Origin struct {
	Ring     string            `json:"ring,omitempty"`     // its ID; empty if it had none
	Clusters map[string]string `json:"clusters,omitempty"` // the UID of each member's cluster
}

// Known says whether o says anything.
func (o Origin) Known() bool { return o.Ring != "" || len(o.Clusters) > 0 }

// Foreign says that o was written in another ring than now. Where one of them has no
// ring ID the members decide: it is the same ring if one of them is the same cluster, or
// if they have no name in common, since members come and go.
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

// renamed says that o's ring has another ID now: the CRDs of the first release drop it,
// and a later sweep makes a new one. All of its clusters are members under their names.
// One alone may have joined another ring.
func (o Origin) renamed(now Origin) bool {
	for peer, uid := range o.Clusters {
		if now.Clusters[peer] != uid {
			return false
		}
	}
	return len(o.Clusters) > 1
}

// OriginOf is the ring that the believed peers are in, with all members that they list.
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
