// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// sourceOf reads the peers from the file. Without a file it starts two API servers in memory, which
// done closes.
func sourceOf(ctx context.Context, o options) (source region.Source, done func(), err error) {
	if o.peers != "" {
		source, err = region.FromFile(o.peers, region.Trust{})
		return source, func() {}, err
	}
	var servers []*regiontest.Server
	done = func() {
		for _, server := range servers {
			server.Close()
		}
	}
	var peers []region.Peer
	for _, name := range []region.PeerName{"eu-west", "us-east"} {
		server := regiontest.NewServer(regiontest.Options{Name: string(name)})
		servers = append(servers, server)
		kubeconfig, err := server.Listen(ctx)
		if err != nil {
			done()
			return nil, nil, err
		}
		credentials, err := region.ParseKubeconfig(kubeconfig, region.Trust{})
		if err != nil {
			done()
			return nil, nil, err
		}
		peers = append(peers, region.Peer{
			Name: name, Credentials: credentials, Regions: []region.Key{{Provider: "loodse", Name: string(name) + "-1"}},
		})
	}
	if source, err = region.FromPeers(peers...); err != nil {
		done()
		return nil, nil, err
	}
	return source, done, nil
}
