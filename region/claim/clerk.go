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

// clerk carries out the commands of a round.
type clerk struct {
	arbiter *Arbiter
	scene   *scene
	records *records
	unread  bool // what is on record is not known
}

// carryOut makes one request. Errors are told apart by the reply already and are for
// people.
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
	// One that holds a region may have no object left in the scene.
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

// recorded tells a decision that somebody else wrote from one that cannot be written.
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

// confirm reads, at its peer, the claim that is named.
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

// closeGate makes the ServiceCluster of a claim that is gone Pending, before another
// peer's may be open.
func (c *clerk) closeGate(ctx context.Context, p *peer) (outcome, error) {
	client := p.clusterClient(c.scene.key)
	cluster, err := client.Get(ctx, c.scene.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return done, nil
	}
	if err != nil {
		return failed, err
	}
	if !inForce(cluster) {
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

// absent says whether err is an API server's word that the object is not there. One
// that does not serve the type at the moment, as some do while they start, knows
// nothing about its objects.
func absent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}
