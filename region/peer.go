// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// PeerName names one regional control plane: a DNS-1123 subdomain, unique in a Source. It has its own type, so that the
// compiler keeps peers and regions apart.
type PeerName string

// Validate returns why n is not a DNS-1123 subdomain, or nil.
func (n PeerName) Validate() error {
	if msgs := validation.IsDNS1123Subdomain(string(n)); len(msgs) > 0 {
		return fmt.Errorf("peer %q: %s", n, strings.Join(msgs, "; "))
	}
	return nil
}

// Peer describes one control plane. It is plain data and holds no connection. It is not modified after it was published
// in a Snapshot.
type Peer struct {
	Name        PeerName
	Regions     []Key             // sorted; each region is in one peer of a Snapshot
	Labels      map[string]string // for label selectors
	UID         types.UID         // of the namespace kube-system; empty: not known. Another cluster receives only the read of its UID
	Credentials Credentials
}

// clone returns a copy of p with sorted regions that shares no slice or map with p.
func (p Peer) clone() *Peer {
	p.Regions = slices.Clone(p.Regions)
	slices.SortFunc(p.Regions, Key.Compare)
	p.Labels = maps.Clone(p.Labels)
	return &p
}

// equal reports whether both describe the same control plane, reached in the same way.
func (p *Peer) equal(q *Peer) bool {
	return p.Name == q.Name && p.UID == q.UID && slices.Equal(p.Regions, q.Regions) && maps.Equal(p.Labels, q.Labels) &&
		p.Credentials.equal(q.Credentials)
}

func compareNames(a, b PeerName) int { return cmp.Compare(a, b) }
