// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// findings are the observed state of one Peer. With the present status they determine the next status.
type findings struct {
	kubeconfig kubeconfig
	others     []*masterv1alpha1.Peer // all Peers except this one and those that are being deleted

	uid    types.UID // of the reached cluster; empty if none was reached
	plane  types.UID // of the plane itself; empty if not known
	master bool      // the cluster has a KubeCarrier that is a master
	looked bool      // master is known

	health      region.Health
	healthKnown bool // health is known, from a connection in the Ring or from an inspection

	bound   []region.Key // regions with a Bound claim
	unsure  []region.Key // regions whose last phase by an arbiter is not known
	known   bool         // bound and unsure are complete
	missing error        // why bound cannot be read

	version masterv1alpha1.VersionInfo // zero if not known
}

// maxRegions is the limit in the schema of Peers.
const maxRegions = 1024

// statusOf returns the next status of p. It modifies neither p nor f.
func statusOf(p *masterv1alpha1.Peer, f findings, now time.Time) masterv1alpha1.PeerStatus {
	next := *p.Status.DeepCopy()
	next.ObservedGeneration = p.Generation
	set := func(c metav1.Condition) {
		c.ObservedGeneration, c.LastTransitionTime = p.Generation, metav1.NewTime(now)
		before := meta.FindStatusCondition(next.Conditions, c.Type)
		if before != nil && before.Status == c.Status && before.Reason == c.Reason && c.Type == string(masterv1alpha1.PeerConditionReachable) {
			c.Message = before.Message // errors contain ports and times that change with each probe
		}
		meta.SetStatusCondition(&next.Conditions, c)
	}
	if p.DeletionTimestamp != nil {
		next.Phase = masterv1alpha1.PeerTerminating
		set(sum(next.Conditions))
		return next
	}
	set(f.kubeconfigValid(p))
	set(f.reachable(p))
	next.ClusterUID = f.accept(p)
	next.Regions = nil
	unique := f.serve(p, &next)
	set(unique)
	ready := sum(next.Conditions)
	set(ready)
	next.Phase = phaseOf(ready.Status, next.ClusterUID)
	if f.version.Version != "" {
		next.KubeCarrierVersion = f.version
	}
	if equality.Semantic.DeepEqual(next, p.Status) {
		return next
	}
	if at := f.health.LastContact; !at.IsZero() && f.healthKnown {
		next.LastContact = metav1.NewTime(at.Truncate(time.Second))
	}
	return next
}

func condition(kind masterv1alpha1.PeerConditionType, status metav1.ConditionStatus, reason masterv1alpha1.PeerConditionReason, message string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: status, Reason: string(reason), Message: bounded(message)}
}

// bounded cuts a message, which may come from a hostile peer, to the limit of a condition.
func bounded(message string) string {
	const most = 1024
	if len(message) > most {
		return strings.ToValidUTF8(message[:most], "") + "…"
	}
	return message
}

func (f *findings) kubeconfigValid(p *masterv1alpha1.Peer) metav1.Condition {
	const kind = masterv1alpha1.PeerConditionKubeconfigValid
	k := f.kubeconfig
	rotation := f.health.Rotation
	before := meta.FindStatusCondition(p.Status.Conditions, string(kind))
	switch {
	case !k.done && before != nil && before.ObservedGeneration == p.Generation:
		return *before // this program has just started
	case k.reason == masterv1alpha1.PeerReasonPending, k.reason == masterv1alpha1.PeerReasonSecretUnreadable:
		return condition(kind, metav1.ConditionUnknown, k.reason, k.problem)
	case k.problem != "":
		return condition(kind, metav1.ConditionFalse, k.reason, k.problem)
	case errors.Is(rotation, region.ErrOtherCluster), errors.Is(f.health.Err, region.ErrOtherCluster):
		return condition(kind, metav1.ConditionFalse, masterv1alpha1.PeerReasonOtherCluster,
			"the kubeconfig reaches another cluster than this peer's; it is not used")
	case refused(rotation):
		return condition(kind, metav1.ConditionFalse, masterv1alpha1.PeerReasonCredentialsRejected,
			"the peer rejects the new kubeconfig; the previous one stays in use")
	case rotation == nil && f.health.State == region.Unknown && accepted(p) && before != nil && before.Status == metav1.ConditionFalse:
		return *before // the kubeconfig was not used yet
	case rotation != nil:
		return condition(kind, metav1.ConditionFalse, masterv1alpha1.PeerReasonUnreachable,
			"no API server is reachable with the new kubeconfig; the previous one stays in use")
	default:
		return condition(kind, metav1.ConditionTrue, masterv1alpha1.PeerReasonAccepted, "")
	}
}

// reachable returns the condition Reachable. While the health is unknown, it keeps the present condition, unless it is
// certain that no probe is possible.
func (f *findings) reachable(p *masterv1alpha1.Peer) metav1.Condition {
	const kind = masterv1alpha1.PeerConditionReachable
	switch f.health.State {
	case region.Healthy:
		return condition(kind, metav1.ConditionTrue, masterv1alpha1.PeerReasonReachable, "")
	case region.Unhealthy:
		reason := masterv1alpha1.PeerReasonUnreachable
		if refused(f.health.Err) {
			reason = masterv1alpha1.PeerReasonCredentialsRejected
		}
		return condition(kind, metav1.ConditionFalse, reason, fmt.Sprint(f.health.Err))
	default:
		before := meta.FindStatusCondition(p.Status.Conditions, string(kind))
		if before != nil && (f.healthKnown || f.kubeconfig.usable || !f.kubeconfig.done) {
			return *before
		}
		return condition(kind, metav1.ConditionUnknown, masterv1alpha1.PeerReasonPending, "it was not probed yet")
	}
}

// isSelf reports whether p is the Peer of the plane's own installation.
func (f *findings) isSelf(p *masterv1alpha1.Peer) bool {
	return p.Name == masterv1alpha1.LocalPeer && f.plane != "" && f.uid == f.plane
}

// rival returns the Peer that keeps the cluster of p, so that p is refused; nil if p may have it. The plane's own Peer
// has priority, then accepted Peers, then older ones.
func (f *findings) rival(p *masterv1alpha1.Peer) *masterv1alpha1.Peer {
	if f.uid == "" || f.isSelf(p) {
		return nil
	}
	for _, q := range f.others {
		if q.Status.ClusterUID != f.uid {
			continue
		}
		self := q.Name == masterv1alpha1.LocalPeer && f.uid == f.plane
		if !accepted(p) || self || byAge(q, p) < 0 {
			return q
		}
	}
	return nil
}

// accept returns the UID of p's cluster, or empty if p is refused or not known to be fit. An accepted Peer stays
// accepted until it is known to be unfit.
func (f *findings) accept(p *masterv1alpha1.Peer) types.UID {
	switch {
	case f.rival(p) != nil, f.master && !f.isSelf(p):
		return ""
	case accepted(p):
		return p.Status.ClusterUID
	case f.uid != "" && f.looked && f.missing == nil:
		return f.uid
	default:
		return ""
	}
}

// serve sets the regions of next, and returns the condition RegionsUnique. A cluster that is refused or was not
// reached yet gets no regions. A region that another Peer holds is left out, and the condition names it.
func (f *findings) serve(p *masterv1alpha1.Peer, next *masterv1alpha1.PeerStatus) metav1.Condition {
	const kind = masterv1alpha1.PeerConditionRegionsUnique
	rival := f.rival(p)
	switch {
	case f.master && !f.isSelf(p):
		return condition(kind, metav1.ConditionFalse, masterv1alpha1.PeerReasonIsMaster,
			"the cluster has a KubeCarrier with spec.master true; a master cannot be a peer")
	case rival != nil:
		return condition(kind, metav1.ConditionFalse, masterv1alpha1.PeerReasonSameCluster,
			fmt.Sprintf("Peer %s reaches the same cluster (kube-system has UID %s)", rival.Name, f.uid))
	case next.ClusterUID == "" && f.missing == nil:
		return condition(kind, metav1.ConditionUnknown, masterv1alpha1.PeerReasonPending, "it was not reached yet")
	}
	wanted := f.wanted(p)
	var lost []string
	holders := f.holders(p, wanted)
	for _, key := range wanted {
		if holder := holders[key]; holder != nil {
			lost = append(lost, fmt.Sprintf("region %s is served by Peer %s", key, holder.Name))
			continue
		}
		next.Regions = append(next.Regions, masterv1alpha1.RegionReference{Name: key.Name, Provider: key.Provider})
	}
	before := meta.FindStatusCondition(p.Status.Conditions, string(kind))
	switch {
	case f.missing != nil:
		return condition(kind, metav1.ConditionUnknown, reasonOf(f.missing), "its regions cannot be read: "+f.missing.Error())
	case len(lost) > 0:
		return condition(kind, metav1.ConditionFalse, masterv1alpha1.PeerReasonRegionServedTwice, strings.Join(lost, "; "))
	case f.known:
		return condition(kind, metav1.ConditionTrue, masterv1alpha1.PeerReasonUnique, "")
	case before != nil && accepted(p):
		return *before
	default:
		return condition(kind, metav1.ConditionUnknown, masterv1alpha1.PeerReasonPending, "its regions are not known yet")
	}
}

// wanted returns the regions of p according to its claims. It keeps the present regions while the claims are not known,
// and each present region whose claim is unsure.
func (f *findings) wanted(p *masterv1alpha1.Peer) []region.Key {
	if !f.known {
		return keysOf(p)
	}
	wanted := f.bound
	if len(f.unsure) > 0 {
		wanted = slices.Clone(wanted)
		for _, key := range keysOf(p) {
			if slices.Contains(f.unsure, key) {
				wanted = append(wanted, key)
			}
		}
		slices.SortFunc(wanted, region.Key.Compare)
	}
	return wanted[:min(len(wanted), maxRegions)]
}

// holders returns, for each region in keys, the other Peer that serves it, or nil if p may serve it. Another Peer
// serves a region that its status lists, unless p lists the region too and is older. If several others list it, the
// oldest serves it, as in servedBy.
func (f *findings) holders(p *masterv1alpha1.Peer, keys []region.Key) map[region.Key]*masterv1alpha1.Peer {
	holders := make(map[region.Key]*masterv1alpha1.Peer, len(keys))
	for _, key := range keys {
		holders[key] = nil
	}
	ours := keysOf(p)
	for _, q := range f.others {
		if !accepted(q) {
			continue
		}
		for _, r := range q.Status.Regions { // keysOf would allocate a slice per Peer
			key := region.Key{Provider: r.Provider, Name: r.Name}
			before, asked := holders[key]
			if asked && (before == nil || byAge(q, before) < 0) && (byAge(q, p) < 0 || !slices.Contains(ours, key)) {
				holders[key] = q
			}
		}
	}
	return holders
}

// reasonOf returns the reason why regions cannot be read.
func reasonOf(err error) masterv1alpha1.PeerConditionReason {
	if apierrors.IsNotFound(err) {
		return masterv1alpha1.PeerReasonCRDsMissing
	}
	return masterv1alpha1.PeerReasonRightsMissing
}

// sum derives the condition Ready from the other conditions. False comes before Unknown. Among conditions of the same
// status, the one that needs a person's action comes first.
func sum(conditions []metav1.Condition) metav1.Condition {
	of := func(kind masterv1alpha1.PeerConditionType) metav1.Condition {
		if c := meta.FindStatusCondition(conditions, string(kind)); c != nil {
			return *c
		}
		return condition(kind, metav1.ConditionUnknown, masterv1alpha1.PeerReasonPending, "nothing was observed yet")
	}
	const ready = masterv1alpha1.PeerConditionReady
	order := []metav1.Condition{
		of(masterv1alpha1.PeerConditionKubeconfigValid), of(masterv1alpha1.PeerConditionReachable), of(masterv1alpha1.PeerConditionRegionsUnique),
	}
	unique := order[2]
	switch masterv1alpha1.PeerConditionReason(unique.Reason) {
	case masterv1alpha1.PeerReasonIsMaster, masterv1alpha1.PeerReasonSameCluster:
		order = []metav1.Condition{unique, order[0], order[1]}
	case masterv1alpha1.PeerReasonCRDsMissing, masterv1alpha1.PeerReasonRightsMissing:
		order[2].Status = metav1.ConditionFalse // it needs a person's action
	}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, c := range order {
			if c.Status == status {
				return condition(ready, status, masterv1alpha1.PeerConditionReason(c.Reason), c.Message)
			}
		}
	}
	return condition(ready, metav1.ConditionTrue, masterv1alpha1.PeerReasonReachable, "")
}

func phaseOf(ready metav1.ConditionStatus, cluster types.UID) masterv1alpha1.PeerPhase {
	switch {
	case ready == metav1.ConditionTrue:
		return masterv1alpha1.PeerReady
	case ready == metav1.ConditionUnknown && cluster == "":
		return masterv1alpha1.PeerPending
	default:
		return masterv1alpha1.PeerNotReady
	}
}
