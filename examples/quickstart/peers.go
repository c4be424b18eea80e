// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// ring is the peers of the story, and their kubeconfigs for another process.
type ring struct {
	region.Directory
	files kubeconfigs
}

// connect returns a connection to each peer. Each serves one region of the provider loodse, with
// the peer's name. It does no I/O.
func connect(files kubeconfigs) (*ring, error) {
	var conns []*region.Conn
	for _, file := range files {
		credentials, err := region.ParseKubeconfig(file.Data, region.Trust{})
		if err != nil {
			return nil, fmt.Errorf("kubeconfig of peer %s: %w", file.Peer, err)
		}
		conn, err := region.NewConn(region.Peer{
			Name:        file.Peer,
			Regions:     []region.Key{regionOf(file.Peer)},
			Credentials: credentials,
		}, region.ConnOptions{})
		if err != nil {
			return nil, err
		}
		conns = append(conns, conn)
	}
	return &ring{Directory: region.Fixed(conns...), files: files}, nil
}

func regionOf(peer region.PeerName) region.Key {
	return region.Key{Provider: "loodse", Name: string(peer) + "-1"}
}

// peer returns the i-th peer of the command line, modulo their number.
func (r *ring) peer(i int) region.PeerName { return r.files[i%len(r.files)].Peer }

// lasting reports whether the user gave the peers. Such peers outlive the program, so it must
// remove its objects.
func (r *ring) lasting() bool { return r.files[0].own }

// String lists the peers.
func (r *ring) String() string {
	var names []string
	for _, file := range r.files {
		names = append(names, string(file.Peer))
	}
	return strings.Join(names, ", ")
}

// memory is a set of API servers within this process. Other processes can reach them, too.
type memory struct {
	servers []*regiontest.Server
	files   kubeconfigs
}

// listen starts an API server in memory for each name.
func listen(ctx context.Context, names ...region.PeerName) (*memory, error) {
	m := &memory{}
	for _, name := range names {
		server := regiontest.NewServer(regiontest.Options{Name: string(name), Authorize: onlyMasters})
		m.servers = append(m.servers, server)
		data, err := server.Listen(ctx)
		if err != nil {
			m.close()
			return nil, err
		}
		m.files = append(m.files, kubeconfig{Peer: name, Data: data})
	}
	return m, nil
}

func (m *memory) close() {
	for _, server := range m.servers {
		server.Close()
	}
}

// onlyMasters allows only the group system:masters, as an API server without any RBAC roles does.
func onlyMasters(r regiontest.Request) error {
	if slices.Contains(r.User.Groups, "system:masters") {
		return nil
	}
	return errors.New("nothing was granted")
}
