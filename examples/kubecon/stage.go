// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// stage is the set of API servers of the story.
type stage struct {
	upstream *region.Conn
	clusters []*cluster
	script   *script       // nil with real clusters
	grace    time.Duration // how long the replicas of an unreachable cluster still count
}

// cluster is a cluster that is attached to the upstream.
type cluster struct {
	name string
	conn *region.Conn // direct connection
	link *link        // the syncer's connection
	data []byte       // kubeconfig that leads through the link
}

// open connects to the given API servers. The caller must close the stage.
func open(given kubeconfigs, grace time.Duration) (_ *stage, err error) {
	s := &stage{grace: grace}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, k := range given {
		conn, err := connect(k)
		if err != nil {
			return nil, err
		}
		if k.name == upstream {
			s.upstream = conn
			continue
		}
		c := &cluster{name: k.name, conn: conn}
		s.clusters = append(s.clusters, c)
		if c.link, c.data, err = newLink(k.data); err != nil {
			return nil, fmt.Errorf("link to %s: %w", k.name, err)
		}
	}
	return s, nil
}

func connect(k kubeconfig) (*region.Conn, error) {
	credentials, err := region.ParseKubeconfig(k.data, region.Trust{})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", k.name, err)
	}
	return region.NewConn(region.Peer{Name: region.PeerName(k.name), Credentials: credentials}, region.ConnOptions{})
}

func (s *stage) close() {
	if s.upstream != nil {
		s.upstream.Close()
	}
	for _, c := range s.clusters {
		c.conn.Close()
		if c.link != nil {
			c.link.close()
		}
	}
}
