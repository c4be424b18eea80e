// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"testing"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/region"
)

// Peer returns the region.Peer of a plane, with the name of the plane, the administrator's
// credentials and the given regions.
func Peer(t testing.TB, p *plane.Plane, regions ...region.Key) region.Peer {
	t.Helper()
	return PeerAs(t, p, p.Kubeconfig(), regions...)
}

// PeerAs is [Peer] with the credentials of a kubeconfig, such as one that
// [plane.Plane.RunAs] returned.
func PeerAs(t testing.TB, p *plane.Plane, kubeconfig []byte, regions ...region.Key) region.Peer {
	t.Helper()
	credentials, err := region.ParseKubeconfig(kubeconfig, region.Trust{})
	if err != nil {
		t.Fatalf("the kubeconfig of %s: %v", p.Name(), err)
	}
	return region.Peer{Name: region.PeerName(p.Name()), Regions: regions, Credentials: credentials}
}
