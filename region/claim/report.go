// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// atOnce bounds the concurrent writes for one region.
const atOnce = 16

// inFreshPeers calls fn for the places whose peers are fresh, each with a timeout, and joins the errors.
func (a *Arbiter) inFreshPeers(ctx context.Context, s *regionState, op string, fn func(ctx context.Context, at *peerState) error) error {
	errs := make([]error, len(s.places))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range s.places {
		at := &s.places[i]
		if at.contact != fresh {
			continue
		}
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, a.opts.CallTimeout)
			defer cancel()
			if err := fn(ctx, at); err != nil {
				errs[i] = &region.Error{Peer: at.peer.name, Region: s.key, Op: op, Err: err}
			}
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

// makeClaims creates the RegionClaims of ServiceClusters that have none.
func (a *Arbiter) makeClaims(ctx context.Context, s *regionState) error {
	return a.inFreshPeers(ctx, s, "create RegionClaim", func(ctx context.Context, at *peerState) error {
		if at.claim != nil || at.cluster == nil || leaving(at.cluster) || at.peer.clusters.Err() != nil {
			return nil
		}
		_, err := at.peer.claimClient(s.key).Create(ctx, claimFor(at.cluster), metav1.CreateOptions{FieldManager: FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// dropClaims deletes RegionClaims whose ServiceCluster is gone, for API servers without a garbage
// collector.
func (a *Arbiter) dropClaims(ctx context.Context, s *regionState) error {
	return a.inFreshPeers(ctx, s, "delete RegionClaim", func(ctx context.Context, at *peerState) error {
		if at.claim == nil || leaving(at.claim) || at.peer.clusters.Err() != nil {
			return nil
		}
		owner, ok := ownerOf(at.claim)
		if !ok || at.cluster != nil && at.cluster.GetUID() == owner.UID {
			return nil
		}
		return a.write(s.key, &at.peer.oldClaims, at.claim, func() error {
			cluster, err := at.peer.clusterClient(s.key).Get(ctx, owner.Name, metav1.GetOptions{})
			switch {
			case absent(err):
			case err != nil:
				return err
			case cluster.GetUID() == owner.UID:
				return nil
			}
			return at.peer.claimClient(s.key).Delete(ctx, at.claim.GetName(), metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: new(at.claim.GetUID())},
			})
		})
	})
}

// reportAll writes the status of each claim and then its ServiceCluster's gate.
func (a *Arbiter) reportAll(ctx context.Context, s *regionState, r ruling) error {
	return a.inFreshPeers(ctx, s, "report RegionClaim", func(ctx context.Context, at *peerState) error {
		phase, known, err := a.report(ctx, s, at, r)
		if at.cluster == nil {
			at.peer.gates.forget(s.key)
			at.peer.oldClusters.forget(s.key)
		}
		if err != nil || !known || at.cluster == nil || at.peer.clusters.Err() != nil {
			return err
		}
		if at.claim == nil && !leaving(at.cluster) {
			return nil // the claim was just created: wait until the cache shows it
		}
		return a.gate(ctx, s, at, phase)
	})
}

// report writes the status of a claim and returns the phase in effect. False means that the phase is
// not known.
func (a *Arbiter) report(ctx context.Context, s *regionState, at *peerState, r ruling) (v1alpha1.RegionClaimPhase, bool, error) {
	if at.claim == nil {
		at.peer.claimRecords.forget(s.key)
		at.peer.oldClaims.forget(s.key)
		return "", true, nil
	}
	if a.decisions != nil && !inEffect(at.claim) {
		return v1alpha1.RegionClaimPending, true, nil // a guard claims no region
	}
	mine := at.peer.claimRecords.report(s.key, at.claim)
	replaced := isReplaced(at.claim, mine)
	if r.blind && replaced {
		return "", false, nil // it may have been Bound: keep the gate
	}
	status, ok := reportOn(at.claim, r, mine, time.Now())
	if !ok {
		return statusIn(at.claim).Phase, true, nil
	}
	wait, err := a.correct(ctx, s.key, at, status)
	switch {
	case err != nil || wait > 0 && replaced:
		return status.Phase, true, err
	case wait > 0:
		return statusIn(at.claim).Phase, true, nil // the gate follows the other arbiter's status too
	}
	wrote, err := a.apply(ctx, s.key, at.peer, claims.Resource, at.claim, &status)
	if wrote && err == nil {
		at.peer.claimRecords.record(s.key, at.claim, &status)
		e := reportEvent(s.key, at.peer.name, at.claim, status)
		if replaced && mine.agrees(&status) {
			e.Before = mine.Phase // the replacement was no decision
		}
		a.opts.Observer.reported(ctx, e)
	}
	return status.Phase, true, err
}

// gate writes our part of a ServiceCluster's status.
func (a *Arbiter) gate(ctx context.Context, s *regionState, at *peerState, phase v1alpha1.RegionClaimPhase) error {
	g := gateOf(at.cluster, phase, time.Now())
	wait, _, err := at.peer.gates.correct(s.key, at.cluster, &g, time.Now())
	if err != nil || wait > 0 {
		a.queue.AddAfter(s.key.String(), wait)
		return err
	}
	wrote, err := a.apply(ctx, s.key, at.peer, clusters.Resource, at.cluster, &g)
	if wrote && err == nil {
		at.peer.gates.record(s.key, at.cluster, &g)
		a.opts.Observer.gated(ctx, GateEvent{Region: s.key, Peer: at.peer.name, Bound: phase == v1alpha1.RegionClaimBound})
	}
	return err
}

// apply writes the status of obj unless it is the same already. For a conflict or a deleted object see write.
func (a *Arbiter) apply(ctx context.Context, k region.Key, p *peer, resource string, obj *unstructured.Unstructured, status any) (wrote bool, err error) {
	old := &p.oldClaims
	if resource == clusters.Resource {
		old = &p.oldClusters
	}
	desired, err := identified(obj, status)
	if err != nil {
		return false, err
	}
	client := p.conn.Dynamic().Resource(v1alpha1.GroupVersion.WithResource(resource)).Namespace(obj.GetNamespace())
	err = a.write(k, old, obj, func() (err error) {
		wrote, err = loop.Apply(ctx, client, obj, desired, FieldManager, "status")
		wrote = wrote && err == nil
		return err
	})
	return wrote, err
}

// write makes a write to the cached obj. A conflict or a deleted object is not an error: the cache will report the change,
// and until then writes to obj are repeated with backoff.
func (a *Arbiter) write(k region.Key, old *outdated, obj *unstructured.Unstructured, do func() error) error {
	wait := old.wait(k, obj, time.Now())
	if wait == 0 {
		err := do()
		if !absent(err) && !apierrors.IsConflict(err) {
			return err
		}
		wait = old.prove(k, obj, time.Now())
	}
	a.queue.AddAfter(k.String(), wait)
	return nil
}
