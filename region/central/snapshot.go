// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// member is a peer of a Snapshot. If its credentials are withheld or were not read, withheld or unread is the reason.
type member struct {
	region.Peer
	withheld, unread string
}

func equal(a, b []member) bool {
	return slices.EqualFunc(a, b, func(m, n member) bool {
		return m.Name == n.Name && m.UID == n.UID && m.withheld == n.withheld && m.unread == n.unread && m.Credentials.String() == n.Credentials.String() &&
			slices.Equal(m.Regions, n.Regions) && maps.Equal(m.Labels, n.Labels)
	})
}

func snapshotOf(members []member) (*region.Snapshot, error) {
	peers := make([]region.Peer, len(members))
	for i, m := range members {
		peers[i] = m.Peer
		switch {
		case m.withheld != "":
			peers[i].Credentials = region.Withheld(errors.New(m.withheld))
		case m.unread != "":
			peers[i].Credentials = region.Unread(errors.New(m.unread))
		}
	}
	return region.NewSnapshot(peers...)
}

// members returns one member for each Peer that is not being deleted. It also updates s.good.
func (s *Source) members() []member {
	var present []*masterv1alpha1.Peer
	for _, k := range s.index.list() {
		if k.peer.DeletionTimestamp == nil {
			present = append(present, k.peer)
		}
	}
	served := servedBy(present)
	members := make([]member, 0, len(present))
	good := make(map[types.UID]region.Credentials, len(present))
	for _, p := range present {
		m := member{Peer: region.Peer{Name: region.PeerName(p.Name), Labels: p.Labels, UID: p.Status.ClusterUID}}
		k := s.kubeconfig(p)
		creds, usable := s.good[p.UID]
		if k.usable {
			creds, usable = k.creds, true
		}
		if usable {
			good[p.UID] = creds
		}
		switch {
		case !accepted(p):
			m.withheld = refusal(p)
		case !usable:
			m.unread = k.problem
		default:
			m.Credentials = creds
		}
		for _, key := range keysOf(p) {
			if served[key] == p.Name {
				m.Regions = append(m.Regions, key)
			}
		}
		members = append(members, m)
	}
	s.good = good
	return members
}

// accepted reports whether p was accepted as a peer.
func accepted(p *masterv1alpha1.Peer) bool { return p.Status.ClusterUID != "" }

// refusal returns why p is not accepted.
func refusal(p *masterv1alpha1.Peer) string {
	ready := meta.FindStatusCondition(p.Status.Conditions, string(masterv1alpha1.PeerConditionReady))
	if ready == nil {
		return "the Peer was not accepted yet"
	}
	return fmt.Sprintf("the Peer is not accepted: %s: %s", ready.Reason, ready.Message)
}

// keysOf returns the regions that the status of p lists, or nil if p is not accepted.
func keysOf(p *masterv1alpha1.Peer) []region.Key {
	if !accepted(p) {
		return nil
	}
	keys := make([]region.Key, len(p.Status.Regions))
	for i, r := range p.Status.Regions {
		keys[i] = region.Key{Provider: r.Provider, Name: r.Name}
	}
	return keys
}

// servedBy returns which Peer serves each region: the one whose status lists it. If two replicas decided at the same
// moment, two Peers can list it; then the older one serves it, so that all readers agree.
func servedBy(peers []*masterv1alpha1.Peer) map[region.Key]string {
	served := map[region.Key]string{}
	for _, p := range slices.SortedFunc(slices.Values(peers), byAge) {
		for _, key := range keysOf(p) {
			if _, taken := served[key]; !taken && key.Validate() == nil {
				served[key] = p.Name
			}
		}
	}
	return served
}

// byAge sorts the older Peer first.
func byAge(a, b *masterv1alpha1.Peer) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
