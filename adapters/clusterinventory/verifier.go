// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

const (
	// verifyTimeout limits one read of a cluster's ID, with the run of the plugin.
	verifyTimeout = 10 * time.Second
	// verifyRetry is the time until the next read after one that failed.
	verifyRetry = 10 * time.Second
	// verifyInterval is the time between two reads: the ID of a cluster may change.
	verifyInterval = 5 * time.Minute
)

// verifier compares the ID of each peer's cluster with the ID in its profile. It connects to a peer on its own, because
// no other request may reach a cluster that is not verified.
type verifier struct {
	id      func(ctx context.Context, peer region.Peer) (string, error)
	queue   *loop.Queue
	changed func() // called after a change of a verdict

	mu     sync.Mutex
	claims map[region.PeerName]*claim
}

// claim is the statement of a profile that its cluster has an ID, and the verdict about it.
type claim struct {
	peer    region.Peer
	id      string
	done    bool  // a read has ended
	judged  bool  // a server answered, so the verdict stays until a server answers otherwise
	refusal error // why the peer must not be used; nil: it may, if judged
}

func newVerifier(changed func()) *verifier {
	return &verifier{
		id: readID, changed: changed, queue: loop.NewQueue(loop.QueueOptions{}), claims: map[region.PeerName]*claim{},
	}
}

// readID reads the ID of the cluster that the credentials of the peer reach.
func readID(ctx context.Context, peer region.Peer) (string, error) {
	conn, err := region.NewConn(peer, region.ConnOptions{})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return clusterProperty(ctx, conn, ClusterIDProperty)
}

// verdict is the present result about one peer.
type verdict struct {
	refusal  error // why the peer must not be used; nil: it may
	withheld bool  // its cluster has another ID
	pending  bool  // no read has ended yet
}

// want verifies that the cluster of the peer has the ID, and returns the present verdict. Without an ID there is nothing
// to verify. It does not block.
func (v *verifier) want(peer region.Peer, id string) verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	if id == "" || peer.Credentials.String() == (region.Credentials{}).String() {
		delete(v.claims, peer.Name)
		return verdict{}
	}
	c := v.claims[peer.Name]
	if c == nil || c.id != id || c.peer.UID != peer.UID || c.peer.Credentials.String() != peer.Credentials.String() {
		c = &claim{peer: peer, id: id, refusal: fmt.Errorf("clusterinventory: the ID of the cluster of peer %s was not read yet", peer.Name)}
		v.claims[peer.Name] = c
		v.queue.Add(string(peer.Name))
	}
	return verdict{refusal: c.refusal, withheld: c.judged && c.refusal != nil, pending: !c.done}
}

// keep drops the claims of peers that are gone.
func (v *verifier) keep(present func(region.PeerName) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.claims, func(name region.PeerName, _ *claim) bool { return !present(name) })
}

// verify reads the ID of one peer's cluster and records whether it is the ID of the claim. If the verdict changes, it
// calls changed. It returns the time after which to read the ID again.
func (v *verifier) verify(ctx context.Context, name string) (again time.Duration, err error) {
	v.mu.Lock()
	c := v.claims[region.PeerName(name)]
	v.mu.Unlock()
	if c == nil {
		return 0, nil
	}
	limited, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	id, err := v.id(limited, c.peer)
	if ctx.Err() != nil {
		return 0, nil
	}
	if v.judge(c, id, err) {
		v.changed()
	}
	if err != nil {
		return verifyRetry, nil
	}
	return verifyInterval, nil
}

// judge records the result of a read, and reports whether the claim has changed.
func (v *verifier) judge(c *claim, id string, err error) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := *c
	c.done = true
	switch {
	case err == nil:
		c.judged, c.refusal = true, nil
		if id != "" && id != c.id {
			c.refusal = fmt.Errorf("clusterinventory: peer %s: %w: ClusterProperty %s is %q there, and %q in the ClusterProfile",
				c.peer.Name, region.ErrOtherCluster, ClusterIDProperty, id, c.id)
		}
	case !c.judged:
		c.refusal = fmt.Errorf("clusterinventory: peer %s: the ID of its cluster is not verified: %w", c.peer.Name, stable(err))
	}
	return !before.done || before.judged != c.judged || fmt.Sprint(before.refusal) != fmt.Sprint(c.refusal)
}

// stable replaces an error whose text may change with each attempt by its cause.
func stable(err error) error {
	if cause := region.CauseOf(err); cause == region.CauseForbidden {
		return fmt.Errorf("%s: grant get of clusterproperties.about.k8s.io", cause)
	} else if cause != region.CauseUnknown {
		return errors.New(string(cause))
	}
	return err
}
