// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
)

// record is what a Source remembers of one ClusterProfile.
type record struct {
	uid     types.UID
	created metav1.Time
	version string      // the resourceVersion that was decoded
	peer    region.Peer // the last good one
	id      string      // of the cluster, in the last good profile
	problem string      // why the present profile cannot be used; empty: it can
	logged  string      // the last logged problem
}

// read decodes the profile, unless this version was decoded before. A profile that cannot be used changes only problem.
func (r *record) read(opts *Options, obj *unstructured.Unstructured) {
	if r.version == obj.GetResourceVersion() {
		return
	}
	r.version = obj.GetResourceVersion()
	peer, id, err := opts.peerOf(obj)
	if err != nil {
		r.problem = fmt.Sprintf("ClusterProfile %s/%s: %v", obj.GetNamespace(), obj.GetName(), err)
		if r.peer.Name == "" {
			r.peer = region.Peer{Name: region.PeerName(obj.GetName()), Labels: obj.GetLabels()}
		}
		if r.peer.Credentials.String() == (region.Credentials{}).String() {
			r.peer.Credentials = region.Unread(fmt.Errorf("clusterinventory: %s", r.problem))
		}
		return
	}
	r.peer, r.id, r.problem = peer, id, ""
}

// report logs a problem once, until it changes.
func (r *record) report(ctx context.Context, problem string) {
	if problem == r.logged {
		return
	}
	log := logging.From(ctx).WithValues("profile", r.peer.Name)
	if problem == "" {
		log.Info("The ClusterProfile can be used again")
	} else {
		log.Info("The ClusterProfile cannot be used; its peer keeps the last good state, if there is one", "problem", problem)
	}
	r.logged = problem
}

// byAge sorts the older profile first.
func byAge(a, b *record) int {
	return cmp.Or(a.created.Compare(b.created.Time), cmp.Compare(a.peer.Name, b.peer.Name))
}

// serve removes from each record's peer the regions that the peer of an older profile serves. It returns the peers, and
// the problem of each peer that lost a region.
func serve(records []*record) (peers []region.Peer, problems map[region.PeerName]string) {
	problems = map[region.PeerName]string{}
	served := map[region.Key]region.PeerName{}
	for _, r := range slices.SortedFunc(slices.Values(records), byAge) {
		peer := r.peer
		peer.Regions = nil
		for _, key := range r.peer.Regions {
			if first, taken := served[key]; taken {
				problems[peer.Name] = fmt.Sprintf("region %s is served by %s, whose ClusterProfile is older", key, first)
				continue
			}
			served[key] = peer.Name
			peer.Regions = append(peer.Regions, key)
		}
		peers = append(peers, peer)
	}
	slices.SortFunc(peers, func(a, b region.Peer) int { return cmp.Compare(a.Name, b.Name) })
	return peers, problems
}
