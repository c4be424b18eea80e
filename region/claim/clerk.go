// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// clerk executes the commands of a round.
type clerk struct {
	arbiter *Arbiter
	scene   *regionState
	records *records
	unread  bool // the last read of the decision failed
}

// carryOut executes one command. The round uses only the reply; the error is for logs.
func (c *clerk) carryOut(ctx context.Context, command command) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, c.arbiter.opts.CallTimeout)
	defer cancel()
	switch command.verb {
	case read:
		d, err := c.records.read(ctx)
		if c.unread = err != nil; err != nil {
			return reply{outcome: failed}, &region.Error{Region: c.scene.key, Op: "arbitrate", Err: err}
		}
		return reply{outcome: done, decision: d}, nil
	case write:
		return c.recorded(c.records.write(ctx, command.decision))
	case erase:
		return c.recorded(c.records.erase(ctx))
	}
	// Look among the engaged peers, not in the scene: the holder's peer may have no cached object.
	p := c.arbiter.peer(command.peer)
	if p == nil {
		return reply{outcome: failed}, nil
	}
	var o outcome
	var err error
	op := "read RegionClaim"
	if command.verb == closeGate {
		op = "close gate of ServiceCluster"
		o, err = c.closeGate(ctx, p)
	} else {
		o, err = c.confirm(ctx, p, command)
	}
	if err != nil {
		return reply{outcome: o}, &region.Error{Peer: p.name, Region: c.scene.key, Op: op, Err: err}
	}
	return reply{outcome: o}, nil
}

// recorded distinguishes a decision that another arbiter changed (stale) from a failed write.
func (c *clerk) recorded(err error) (reply, error) {
	switch {
	case err == nil:
		return reply{outcome: done}, nil
	case c.records.last == nil && apierrors.IsNotFound(err):
		err = fmt.Errorf("%w: namespace %s must exist in the central plane", err, c.records.ns)
	case surpassed(err):
		return reply{outcome: stale}, nil
	}
	return reply{outcome: failed}, &region.Error{Region: c.scene.key, Op: "arbitrate", Err: err}
}

// confirm reads the claim of the command at its peer, not from a cache, and returns whether the
// claim exists. For confirmThere, a claim that is being deleted counts as missing.
func (c *clerk) confirm(ctx context.Context, p *peer, command command) (outcome, error) {
	claim, err := p.claimClient(c.scene.key).Get(ctx, c.scene.key.Name, metav1.GetOptions{})
	switch {
	case absent(err):
		return missing, nil
	case err != nil:
		return failed, err
	case claim.GetUID() != command.uid, command.verb == confirmThere && leaving(claim):
		return missing, nil
	}
	return done, nil
}

// closeGate sets the ServiceCluster of a deleted claim to Pending, before the gate in another peer
// may open.
func (c *clerk) closeGate(ctx context.Context, p *peer) (outcome, error) {
	client := p.clusterClient(c.scene.key)
	cluster, err := client.Get(ctx, c.scene.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return done, nil
	}
	if err != nil {
		return failed, err
	}
	if !inEffect(cluster) {
		return done, nil
	}
	g := gateOf(cluster, "", time.Now())
	desired, err := identified(cluster, &g)
	if err == nil {
		_, err = loop.Apply(ctx, client, cluster, desired, FieldManager, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return failed, err
	}
	return done, nil
}

// absent reports whether err proves that the object does not exist. The 404 of an API server that
// does not serve the type at the moment, for example while it starts, proves nothing.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}
