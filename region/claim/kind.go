// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// Kind returns RegionClaim, of kubecarrier.io/v1alpha1, as a fan-out kind, for use without a
// central plane: one peer has the claim and serves the region, the others guard its name. Activated
// writes the status of a committed claim; an Arbiter without a plane writes the status of the
// guards and the gates of ServiceClusters. The coordinator's Start adopts a claim that a user
// applied in one peer only. If users applied claims in several peers before an adoption, an Arbiter
// decides between them.
func Kind() fanout.Kind { return KindWith(nil) }

// KindWith is Kind with an Observer, whose Reported is called for the statuses that Activated
// writes.
func KindWith(o *Observer) fanout.Kind {
	return fanout.Kind{
		Resource:     claims,
		Kind:         "RegionClaim",
		Namespaced:   true,
		Mode:         fanout.Once,
		Within:       fanout.ServiceClusters().Within,
		AdoptApplied: true,
		Activated: func(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured) error {
			return activate(ctx, c, obj, o)
		},
		Ready: ready,
	}
}

// activate reports in c's peer that the committed claim obj is Bound.
func activate(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured, o *Observer) error {
	client := c.Dynamic().Resource(claims).Namespace(obj.GetNamespace())
	claim, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (claim.GetUID() != obj.GetUID() || leaving(claim)) {
		return nil
	}
	if err == nil {
		err = reportStatus(ctx, c.Peer(), client, claim, ruling{decision: heldBy(standing{peer: c.Peer(), claim: claim}), firm: true}, o)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return &region.Error{Peer: c.Peer(), Op: "report RegionClaim " + loop.KeyOf(obj).String(), Err: err}
	}
	return nil
}

// ready reports whether activate is done with obj.
func ready(obj *unstructured.Unstructured) bool {
	s := writtenIn(obj) // a cached object may lack managedFields
	return s.Phase == v1alpha1.RegionClaimBound && s.ObservedGeneration == obj.GetGeneration()
}

// reportStatus writes the status of claim, as it was read, unless it is the same already.
func reportStatus(ctx context.Context, peer region.PeerName, client dynamic.ResourceInterface, claim *unstructured.Unstructured, r ruling, o *Observer) error {
	s, ok := reportOn(claim, r, nil, time.Now())
	if !ok {
		return nil
	}
	desired, err := identified(claim, &s)
	if err != nil {
		return err
	}
	wrote, err := loop.Apply(ctx, client, claim, desired, FieldManager, "status")
	if wrote && err == nil {
		o.reported(ctx, reportEvent(region.Key{Provider: claim.GetNamespace(), Name: claim.GetName()}, peer, claim, s))
	}
	return err
}
