// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// plant is the API servers of the story and the file that lists them. With real API servers only
// the file is needed.
type plant struct {
	servers map[region.PeerName]*regiontest.Server
	names   []region.PeerName // in the file
	file    string
}

// sample shows the form of the file.
const sample = `peers: [{name: eu-west, kubeconfig: eu-west.kubeconfig, regions: [eu-west-1.loodse]}, ...]`

// build starts a server for each name, each with one region of the provider loodse, and writes the
// file.
func build(ctx context.Context, dir string, names ...region.PeerName) (*plant, error) {
	p := &plant{servers: map[region.PeerName]*regiontest.Server{}, file: filepath.Join(dir, "peers.yaml")}
	for _, name := range names {
		server := regiontest.NewServer(regiontest.Options{Name: string(name)})
		p.servers[name] = server
		kubeconfig, err := server.Listen(ctx)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, string(name)+".kubeconfig"), kubeconfig, 0o600)
		}
		if err != nil {
			p.close()
			return nil, err
		}
	}
	if err := p.configure(names...); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// configure rewrites the file.
func (p *plant) configure(names ...region.PeerName) error {
	p.names = names
	var list strings.Builder
	list.WriteString("peers:\n")
	for _, name := range names {
		_, _ = fmt.Fprintf(&list, "- name: %[1]s\n  kubeconfig: %[1]s.kubeconfig\n  regions: [%[1]s-1.loodse]\n", name)
	}
	if err := os.WriteFile(p.file+".new", []byte(list.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(p.file+".new", p.file)
}

func (p *plant) close() {
	for _, server := range p.servers {
		server.Close()
	}
}
