// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// Resolver is a router.Resolver that reads from a central plane which peer serves a region. It is for programs that
// have the peers' kubeconfigs and need the plane for nothing else. Its results equal those of a Source of the same
// plane. It is safe for concurrent use.
type Resolver struct{ plane region.API }

// NewResolver makes a Resolver of the Peers in plane. It does no I/O.
func NewResolver(plane region.API) (*Resolver, error) {
	if argument.Missing(plane) {
		return nil, errors.New("central: plane is nil; make one with region.APIFor")
	}
	return &Resolver{plane: plane}, nil
}

const peersPerPage = 500

// Resolve returns the peer that serves k. It lists the Peers, and needs no other right. Errors: region.ErrUnknownRegion
// if no Peer serves k, otherwise the plane's error.
func (r *Resolver) Resolve(ctx context.Context, k region.Key) (region.PeerName, error) {
	if r.plane == nil {
		return "", errors.New("central: the Resolver was not made by NewResolver")
	}
	var present []*masterv1alpha1.Peer
	opts := metav1.ListOptions{Limit: peersPerPage}
	for {
		page, err := r.plane.Dynamic().Resource(peerResource).List(ctx, opts)
		if err != nil {
			return "", &region.Error{Region: k, Op: "list Peers", Err: err}
		}
		for i := range page.Items {
			if p := decode(&page.Items[i]); p.DeletionTimestamp == nil {
				present = append(present, p)
			}
		}
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			break
		}
	}
	if name, ok := servedBy(present)[k]; ok {
		return region.PeerName(name), nil
	}
	return "", &region.Error{Region: k, Op: "list Peers", Err: region.ErrUnknownRegion}
}
