// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// standing is the cached RegionClaim of a region in one peer.
type standing struct {
	peer    region.PeerName
	contact contact
	claim   *unstructured.Unstructured
}

// settledByProtocol returns the ruling if no plane records decisions: the fan-out protocol lets one
// RegionClaim of a name be Configured, and the others guard it. standings are sorted by peer,
// contacts are those of the ring.
func settledByProtocol(standings []standing, contacts map[region.PeerName]contact) ruling {
	var held *standing
	var applied []string
	r := ruling{undecided: "it is not decided yet: the operation that adds the claim has not ended", firm: allFresh(contacts)}
	for i, s := range standings {
		switch stageOf(s.claim) {
		case "":
			applied = append(applied, string(s.peer))
		case fanoutv1alpha1.StageConfigured:
			// If two claims are Configured, one cached object is stale: it was read before the
			// other claim was committed.
			if held == nil || supersedes(s, *held) {
				held = &standings[i]
			}
		}
	}
	if held != nil {
		r.decision, r.firm = heldBy(*held), held.contact == fresh
		return r
	}
	for _, s := range standings {
		target, _, _ := unstructured.NestedString(s.claim.Object, "spec", "fanout", "claim", "target")
		if target != "" && contacts[region.PeerName(target)] != fresh {
			r.unreachable = true
			r.undecided = fmt.Sprintf("peer %s is unreachable and may hold the region", target)
		}
	}
	switch {
	case len(applied) > 1:
		r.undecided = fmt.Sprintf("it is not decided yet which of the RegionClaims that were applied in the peers %s is Bound", strings.Join(applied, ", "))
	case len(applied) == 1 && !r.unreachable:
		r.undecided = "it is not decided yet: no coordinator has adopted the claim"
	}
	return r
}

// allFresh reports whether the caches of all peers are synced: then an object that is not cached
// does not exist.
func allFresh(contacts map[region.PeerName]contact) bool {
	for _, c := range contacts {
		if c != fresh {
			return false
		}
	}
	return true
}

// supersedes reports whether s is valid rather than held, if both claims of a name are Configured.
// The claim from a synced cache is valid; if both caches are synced or neither is, the claim that
// was added later.
func supersedes(s, held standing) bool {
	if (s.contact == fresh) != (held.contact == fresh) {
		return s.contact == fresh
	}
	return heldBy(held).since.Before(heldBy(s).since)
}

// heldBy returns the decision that a Configured claim stands for.
func heldBy(s standing) decision {
	d := decision{peer: s.peer, uid: s.claim.GetUID()}
	start, _, _ := unstructured.NestedString(s.claim.Object, "spec", "fanout", "claim", "start")
	if at, err := time.Parse(time.RFC3339, start); err == nil {
		d.since = at.UTC().Truncate(time.Second)
	}
	return d
}
