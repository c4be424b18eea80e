// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
)

const (
	// healthInterval is the time between two looks at a peer's health, which do no I/O.
	healthInterval = time.Second
	// factsInterval is the time between two reads of a peer's facts; factsRetry after a read that failed.
	factsInterval = 10 * time.Minute
	factsRetry    = 30 * time.Second
	factsTimeout  = 10 * time.Second
	maxVersion    = 64 << 10 // bytes of the answer to /version
)

// facts are what a Publisher has observed of a peer. It is comparable.
type facts struct {
	state   region.HealthState
	cause   region.Cause // why the peer is not Healthy
	cluster cluster
}

// cluster is what a peer has reported about its cluster.
type cluster struct {
	version        string // of Kubernetes
	uid            types.UID
	id, clusterSet string // of the About API; empty: none
}

// observe keeps the facts of one peer up to date until ctx ends. If the cluster cannot be read, the facts read before
// stay. When ctx has ended, the health in the facts is Unknown.
func (p *Publisher) observe(ctx context.Context, conn *region.Conn) error {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	defer p.update(conn.Peer(), func(f *facts) { f.state, f.cause = region.Unknown, region.CauseUnknown })
	var due time.Time
	for failed := ""; ; {
		health := conn.Health()
		p.update(conn.Peer(), func(f *facts) { f.state, f.cause = health.State, region.CauseOf(health.Err) })
		if !time.Now().Before(due) && health.State != region.Unhealthy {
			c, err := readCluster(ctx, conn)
			due = time.Now().Add(factsInterval)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				due = time.Now().Add(factsRetry)
				if text := stable(err).Error(); text != failed {
					logging.From(ctx).Error(err, "Facts of the peer cannot be read; keeping those read before", "peer", conn.Peer())
					failed = text
				}
			default:
				failed = ""
				p.update(conn.Peer(), func(f *facts) { f.cluster = c })
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// update changes the facts of a peer, and queues its profile if they differ.
func (p *Publisher) update(peer region.PeerName, change func(*facts)) {
	p.mu.Lock()
	before := p.facts[peer]
	after := before
	change(&after)
	p.facts[peer] = after
	if after == (facts{}) {
		delete(p.facts, peer) // observe may end after the peer was forgotten
	}
	p.mu.Unlock()
	if after != before {
		p.queue.Add(string(peer))
	}
}

// readCluster reads what a peer reports about its cluster. The right to read ClusterProperties may be missing.
func readCluster(ctx context.Context, conn *region.Conn) (c cluster, err error) {
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	if c.uid, err = conn.UID(ctx); err != nil {
		return cluster{}, err
	}
	if c.version, err = readVersion(ctx, conn); err != nil {
		return cluster{}, &region.Error{Peer: conn.Peer(), Op: "read version", Err: err}
	}
	for name, value := range map[string]*string{ClusterIDProperty: &c.id, ClusterSetProperty: &c.clusterSet} {
		if *value, err = clusterProperty(ctx, conn, name); err != nil && region.CauseOf(err) != region.CauseForbidden {
			return cluster{}, &region.Error{Peer: conn.Peer(), Op: "observe", Err: err}
		}
	}
	return c, nil
}

// readVersion reads the version of a peer's API server.
func readVersion(ctx context.Context, conn *region.Conn) (string, error) {
	config := conn.Config()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/version", http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := config.Transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the peer answered %s", resp.Status)
	}
	var info version.Info
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxVersion)).Decode(&info); err != nil {
		return "", err
	}
	return info.GitVersion, nil
}
