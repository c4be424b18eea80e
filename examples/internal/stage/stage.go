// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"

	"github.com/atoll-dev/atoll/region"
)

// Stage is a set of connected API servers.
type Stage struct {
	Upstream *region.Conn
	Clusters []*Cluster // sorted by name
}

// Cluster is a cluster that can be attached to the upstream.
type Cluster struct {
	Name string
	Conn *region.Conn // direct connection
	Link *Link        // connection of the syncer
	Data []byte       // kubeconfig that leads through the link
}

// Open connects to the given API servers. The caller must close the Stage.
func Open(given Kubeconfigs) (_ *Stage, err error) {
	s := &Stage{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	for _, k := range given {
		conn, err := Connect(k)
		if err != nil {
			return nil, err
		}
		if k.Name == Upstream {
			s.Upstream = conn
			continue
		}
		c := &Cluster{Name: k.Name, Conn: conn}
		s.Clusters = append(s.Clusters, c)
		if c.Link, c.Data, err = NewLink(k.Data); err != nil {
			return nil, fmt.Errorf("link to %s: %w", k.Name, err)
		}
	}
	return s, nil
}

// Connect connects to the API server of a kubeconfig. The caller must close the connection.
func Connect(k Kubeconfig) (*region.Conn, error) {
	credentials, err := region.ParseKubeconfig(k.Data, region.Trust{})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", k.Name, err)
	}
	return region.NewConn(region.Peer{Name: region.PeerName(k.Name), Credentials: credentials}, region.ConnOptions{})
}

// Close closes all connections and links, and waits for their goroutines.
func (s *Stage) Close() {
	if s.Upstream != nil {
		s.Upstream.Close()
	}
	for _, c := range s.Clusters {
		c.Conn.Close()
		if c.Link != nil {
			c.Link.Close()
		}
	}
}
