// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/claim"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	"github.com/atoll-dev/atoll/region/servicecluster"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

// Peers returns an Observer for central.Peers whose Peer objects are in plane. The Observer also
// calls next, which may be nil.
func (r *Recorder) Peers(plane region.API, next *central.Observer) *central.Observer {
	if r == nil {
		return next
	}
	o := observer.Copy(next)
	o.Ready = observer.Chain(func(_ context.Context, e central.ReadyEvent) {
		if event, ok := ofPeer(e); ok {
			r.Record(plane, event)
		}
	}, o.Ready)
	return o
}

func ofPeer(e central.ReadyEvent) (Event, bool) {
	event := Event{
		About:   Object{APIVersion: masterv1alpha1.GroupVersion.String(), Kind: "Peer", Name: string(e.Peer), UID: e.UID},
		Type:    Warning,
		Reason:  e.Reason,
		Message: cmp.Or(e.Message, "the peer is not ready"),
	}
	switch {
	case e.Status == metav1.ConditionTrue:
		event.Type, event.Reason, event.Message = Normal, "PeerReady", "the peer is accepted and reachable"
	case e.Status == metav1.ConditionUnknown && e.Before != metav1.ConditionTrue:
		return Event{}, false // the Peer is new
	}
	return event, true
}

// Claims returns an Observer for claim.Arbiter, and for claim.KindWith, whose RegionClaims are in
// peers. The Observer also calls next, which may be nil.
func (r *Recorder) Claims(peers region.Directory, next *claim.Observer) *claim.Observer {
	if r == nil {
		return next
	}
	o := observer.Copy(next)
	o.Reported = observer.Chain(func(_ context.Context, e claim.ReportEvent) {
		if event, ok := ofClaim(e); ok {
			r.recordIn(peers, e.Peer, event)
		}
	}, o.Reported)
	o.Contradicted = observer.Chain(func(_ context.Context, e claim.ContradictEvent) {
		r.recordIn(peers, e.Peer, ofContradiction(e))
	}, o.Contradicted)
	return o
}

func aboutClaim(k region.Key, uid types.UID) Object {
	return Object{
		APIVersion: regionv1alpha1.GroupVersion.String(), Kind: "RegionClaim", Namespace: k.Provider, Name: k.Name, UID: uid,
	}
}

func ofContradiction(e claim.ContradictEvent) Event {
	who, advice := fmt.Sprintf("%q", e.By), "this status has no effect, and its writer should not have the right to write it"
	switch e.By {
	case claim.FieldManager:
		who, advice = "another Arbiter", "this peer may be registered in another central plane too"
	case "":
		who = "another client"
	}
	return Event{
		About: aboutClaim(e.Region, e.UID), Type: Warning, Reason: "Contradicted",
		Message: fmt.Sprintf("%s repeatedly writes %s as the holder of the region instead of %s: %s",
			who, cmp.Or(e.Theirs, "no peer"), cmp.Or(e.Holder, "no peer"), advice),
	}
}

func ofClaim(e claim.ReportEvent) (Event, bool) {
	event := Event{About: aboutClaim(e.Region, e.UID), Message: e.Message}
	switch {
	case e.Phase == e.Before:
		return Event{}, false
	case e.Phase == regionv1alpha1.RegionClaimBound:
		event.Type, event.Reason = Normal, "Bound"
	case e.Before == regionv1alpha1.RegionClaimBound:
		event.Type, event.Reason = Warning, "Lost"
	case e.Phase == regionv1alpha1.RegionClaimConflict:
		event.Type, event.Reason = Warning, "Conflict"
	default:
		return Event{}, false
	}
	return event, true
}

// ServiceClusters returns an Observer for servicecluster.Controller, whose ServiceClusters are in peers. The Observer also
// calls next, which may be nil.
func (r *Recorder) ServiceClusters(peers region.Directory, next *servicecluster.Observer) *servicecluster.Observer {
	if r == nil {
		return next
	}
	o := observer.Copy(next)
	o.Reported = observer.Chain(func(_ context.Context, e servicecluster.ReportEvent) {
		if event, ok := ofServiceCluster(e); ok {
			r.recordIn(peers, e.Peer, event)
		}
	}, o.Reported)
	return o
}

func ofServiceCluster(e servicecluster.ReportEvent) (Event, bool) {
	event := Event{
		About: Object{
			APIVersion: regionv1alpha1.GroupVersion.String(), Kind: "ServiceCluster", Namespace: e.Region.Provider, Name: e.Region.Name, UID: e.UID,
		},
		Type: Warning, Reason: e.Reason, Message: e.Message,
	}
	switch regionv1alpha1.ServiceClusterConditionReason(e.Reason) {
	case regionv1alpha1.ServiceClusterReasonComplete:
		event.Type, event.Reason = Normal, "ClusterReady"
		return event, e.Before != metav1.ConditionTrue
	case regionv1alpha1.ServiceClusterReasonHeld, regionv1alpha1.ServiceClusterReasonRivals, regionv1alpha1.ServiceClusterReasonKubeconfigInvalid, regionv1alpha1.ServiceClusterReasonUnreachable:
		return event, true
	}
	return event, e.Before == metav1.ConditionTrue && regionv1alpha1.ServiceClusterConditionReason(e.Reason) != regionv1alpha1.ServiceClusterReasonRemoving
}

// Accounts returns an Observer for account.Replicator and account.Controller. The central objects
// are in plane, and the objects of the peers in peers. The Observer also calls next, which may be
// nil.
func (r *Recorder) Accounts(plane region.API, peers region.Directory, next *account.Observer) *account.Observer {
	if r == nil {
		return next
	}
	o := observer.Copy(next)
	o.Ready = observer.Chain(func(_ context.Context, e account.ReadyEvent) {
		if event, ok := ofAccount(e); ok {
			r.Record(plane, event)
		}
	}, o.Ready)
	o.Removed = observer.Chain(func(_ context.Context, e account.RemoveEvent) {
		r.Record(plane, Event{
			About: about(e.Object), Type: Normal, Reason: "Removed", Message: "every peer has confirmed its removal",
		})
	}, o.Removed)
	o.Repaired = observer.Chain(func(_ context.Context, e account.RepairEvent) {
		if event, ok := ofRepair(e); ok {
			r.recordIn(peers, e.Peer, event)
		}
	}, o.Repaired)
	o.Orphaned = observer.Chain(func(_ context.Context, e account.OrphanEvent) {
		r.recordIn(peers, e.Peer, Event{
			About: about(e.Object), Type: Warning, Reason: "Orphaned",
			Message: "the object of the central plane that it was made for does not exist: remove it, or apply that object again",
		})
	}, o.Orphaned)
	return o
}

func about(o account.Object) Object {
	return Object{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
}

func ofAccount(e account.ReadyEvent) (Event, bool) {
	event := Event{About: about(e.Object), Type: Warning, Reason: e.Reason, Message: e.Message}
	switch {
	case e.Status == metav1.ConditionTrue:
		event.Type, event.Reason = Normal, "Converged"
	case e.Reason == string(accountv1alpha1.AccountReasonRemoving):
		return Event{}, false // an operator requested it
	case e.Before == metav1.ConditionTrue,
		e.Reason == string(accountv1alpha1.AccountReasonConflict), e.Reason == string(accountv1alpha1.AccountReasonPeersUnknown):
	default:
		return Event{}, false // it is in progress
	}
	return event, true
}

func ofRepair(e account.RepairEvent) (Event, bool) {
	event := Event{
		About: Object{
			APIVersion: accountv1alpha1.GroupVersion.String(), Kind: "Account", Name: e.Account, UID: e.UID,
		},
		Type: Normal, Reason: "Repaired", Message: "its namespace, Roles or RoleBindings were changed by hand and are restored",
	}
	if e.Err != nil {
		event.Type, event.Reason = Warning, "RepairFailed"
		event.Message = fmt.Sprintf("its namespace, Roles or RoleBindings could not be restored: %v", e.Err)
		return event, true
	}
	return event, e.Drifted
}

// recordIn records an Event of an object in a peer, and drops it if the peer is unknown.
func (r *Recorder) recordIn(peers region.Directory, peer region.PeerName, e Event) {
	conn, err := peers.Conn(peer)
	if err != nil {
		r.dropped.Add(1)
		return
	}
	r.Record(conn, e)
}
