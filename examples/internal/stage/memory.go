// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// Memory is a set of API servers within this process.
type Memory struct {
	Servers []*regiontest.Server // in the order of Names
	Files   Kubeconfigs
}

// Listen starts an upstream and three clusters. They run until Close, not until ctx ends.
func Listen(ctx context.Context) (*Memory, error) {
	ctx = context.WithoutCancel(ctx)
	m := &Memory{}
	for _, name := range Names() {
		server := regiontest.NewServer(regiontest.Options{Name: name})
		m.Servers = append(m.Servers, server)
		data, err := server.Listen(ctx)
		if err != nil {
			m.Close()
			return nil, err
		}
		m.Files = append(m.Files, Kubeconfig{name, data})
	}
	return m, nil
}

// Close stops the servers.
func (m *Memory) Close() {
	for _, server := range m.Servers {
		server.Close()
	}
}
