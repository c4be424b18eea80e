// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// journals holds the logs of the coordinators of one run. A log survives the crashes of its
// coordinator, as a file does. Two concurrent coordinators never get the same log.
type journals struct {
	mu   sync.Mutex
	free []*waltest.Memory
}

func (j *journals) take() *waltest.Memory {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.free) == 0 {
		return waltest.NewMemory()
	}
	last := j.free[len(j.free)-1]
	j.free = j.free[:len(j.free)-1]
	return last
}

func (j *journals) giveBack(m *waltest.Memory) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.free = append(j.free, m)
}

// journalOf takes one of the logs that belong to a server. The returned func gives it back.
func journalOf(access perturb.Access, server string) (wal.Log, func(), error) {
	u, err := url.Parse(access(server).Host)
	if err != nil {
		return nil, nil, err
	}
	found, ok := hosts.Load(u.Host)
	if !ok {
		return nil, nil, fmt.Errorf("no such host: %s", u.Host)
	}
	of := found.(hosted).journals
	log := of.take()
	return log, func() { of.giveBack(log) }, nil
}

// initialize makes peers the members of a ring, as an operator does before any program runs.
func initialize(servers map[string]perturb.Server, peers []region.PeerName) error {
	return byHand(servers, peers, fanout.Options{}, func(ctx context.Context, c *fanout.Coordinator) error { return c.InitPeers(ctx) })
}

// byHand calls work with a Coordinator that is not started, as an operator uses one from a shell.
func byHand(servers map[string]perturb.Server, peers []region.PeerName, opts fanout.Options, work func(context.Context, *fanout.Coordinator) error) error {
	var conns []*region.Conn
	for _, name := range peers {
		creds, err := region.FromConfig(servers[string(name)].Config())
		if err != nil {
			return err
		}
		conn, err := region.NewConn(region.Peer{Name: name, Credentials: creds}, region.ConnOptions{})
		if err != nil {
			return err
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	c, err := fanout.New(region.Fixed(conns...), waltest.NewMemory(), opts)
	if err != nil {
		return err
	}
	return work(context.Background(), c)
}

// protocolDiffers returns the fields of package fanout's protocol whose values differ between runs.
// Operations have random IDs, which digests include, and the ring has a random ID. The numbers of
// revisions, epochs and notes depend on retries.
func protocolDiffers(resources ...string) []perturb.Field {
	differ := []perturb.Field{
		{Resource: "peersets.fanout.atoll.dev", Path: "spec.ring"},
		{Resource: "peersets.fanout.atoll.dev", Path: "spec.epoch"},
		{Resource: "peersets.fanout.atoll.dev", Path: "spec.notes"},
	}
	for _, resource := range resources {
		for _, path := range []string{"claim.operation", "claim.digest", "claim.epoch", "history", "revision"} {
			differ = append(differ, perturb.Field{Resource: resource, Path: "spec.fanout." + path})
		}
	}
	return differ
}
