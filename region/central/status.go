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

// findings are what is known of one Peer at one time. From them and the status that is written, the next status follows.
type findings struct {
	kubeconfig kubeconfig
	others     []*masterv1alpha1.Peer // all Peers but this one and those that are being deleted

	uid    types.UID // of the cluster that was reached; empty if none was
	plane  types.UID // of the plane itself; empty if not known
	master bool      // there is a KubeCarrier in it that is a master
	looked bool      // whether it is a master is known

	health  region.Health
	watched bool // health and the rest are those of a connection in the Ring

	bound   []region.Key // what is Bound in it
	unsure  []region.Key // what an arbiter said last of it is not known
	known   bool         // bound and unsure are all of it
	missing error        // why bound cannot be read

	version masterv1alpha1.VersionInfo // zero if not known
}

// maxRegions is what the schema of Peers allows.
const maxRegions = 1024

// statusOf returns the status of p that follows from f. It modifies neither.
func statusOf(p *masterv1alpha1.Peer, f findings, now time.Time) masterv1alpha1.PeerStatus {
	next := *p.Status.DeepCopy()
	next.ObservedGeneration = p.Generation
	set := func(c metav1.Condition) {
		c.ObservedGeneration, c.LastTransitionTime = p.Generation, metav1.NewTime(now)
		before := meta.FindStatusCondition(next.Conditions, c.Type)
		if before != nil && before.Status == c.Status && before.Reason == c.Reason && c.Type == string(masterv1alpha1.PeerConditionReachable) {
			c.Message = before.Message // ports and times in errors change with each probe
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
	if at := f.health.LastContact; !at.IsZero() && f.watched {
		next.LastContact = metav1.NewTime(at.Truncate(time.Second))
	}
	return next
}

func condition(kind masterv1alpha1.PeerConditionType, status metav1.ConditionStatus, reason masterv1alpha1.PeerConditionReason, message string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: status, Reason: string(reason), Message: bounded(message)}
}

// bounded cuts what a hostile peer says to what a condition takes.
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
		return *before // this program has just begun
	case k.reason == masterv1alpha1.PeerReasonPending, k.reason == masterv1alpha1.PeerReasonSecretUnreadable:
		return condition(kind, metav1.ConditionUnknown, k.reason, k.problem)
	case k.problem != "":
		return condition(kind, metav1.ConditionFalse, k.reason, k.problem)
	case errors.Is(rotation, region.ErrOtherCluster), errors.Is(f.health.Err, region.ErrOtherCluster):
		return condition(kind, metav1.ConditionFalse, masterv1alpha1.PeerReasonOtherCluster,
			"the kubeconfig reaches another cluster than this peer is; it is not used")
	case refused(rotation):
		return condition(kind, metav1.ConditionFalse, masterv1alpha1.PeerReasonCredentialsRejected,
			"the peer refuses the new kubeconfig; the one before is used as long as it works")
	case rotation == nil && f.health.State == region.Unknown && accepted(p) && before != nil && before.Status == metav1.ConditionFalse:
		return *before // nobody has asked yet what it reaches
	case rotation != nil:
		return condition(kind, metav1.ConditionFalse, masterv1alpha1.PeerReasonUnreachable,
			"nobody answers at the new kubeconfig; the one before is used as long as it works")
	default:
		return condition(kind, metav1.ConditionTrue, masterv1alpha1.PeerReasonAccepted, "")
	}
}

// reachable keeps what was said before as long as nothing is known and somebody can ask.
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
		if before != nil && (f.watched || f.kubeconfig.usable || !f.kubeconfig.done) {
			return *before
		}
		return condition(kind, metav1.ConditionUnknown, masterv1alpha1.PeerReasonPending, "it was not asked yet")
	}
}

// isSelf says whether p is the Peer that stands for the plane's own installation.
func (f *findings) isSelf(p *masterv1alpha1.Peer) bool {
	return p.Name == masterv1alpha1.LocalPeer && f.plane != "" && f.uid == f.plane
}

// rival returns the Peer that was accepted for the cluster that p reaches, if p has to give way to it: the plane's own
// gives way to none; one that is not accepted gives way to the one that is; of two that are, the younger does.
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

// accept returns the UID of the cluster that p is, empty if it is not fit to be a peer or nobody knows yet. What was
// accepted stays so until it is known to be unfit.
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

// serve sets the regions of next, and says whether they are nobody else's.
func (f *findings) serve(p *masterv1alpha1.Peer, next *masterv1alpha1.PeerStatus) metav1.Condition {
	const kind = masterv1alpha1.PeerConditionRegionsUnique
	rival := f.rival(p)
	switch {
	case f.master && !f.isSelf(p):
		return condition(kind, metav1.ConditionFalse, masterv1alpha1.PeerReasonIsMaster,
			"a KubeCarrier with spec.master true stands there; a master cannot be a peer")
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

// wanted are the regions of p as its claims say. Those of which they do not, or not yet, are as they were.
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

// holders are the Peers that serve these regions and to which p has to give way: those that have them, unless p has them
// too and is the elder. It is what servedBy says.
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
		for _, r := range q.Status.Regions { // without a slice for each of them
			key := region.Key{Provider: r.Provider, Name: r.Name}
			before, asked := holders[key]
			if asked && (before == nil || byAge(q, before) < 0) && (byAge(q, p) < 0 || !slices.Contains(ours, key)) {
				holders[key] = q
			}
		}
	}
	return holders
}

// reasonOf says why regions cannot be read.
func reasonOf(err error) masterv1alpha1.PeerConditionReason {
	if apierrors.IsNotFound(err) {
		return masterv1alpha1.PeerReasonCRDsMissing
	}
	return masterv1alpha1.PeerReasonRightsMissing
}

// sum is Ready, which follows from the others: what is False goes before what is not known, and what a person has to do
// something about first goes first.
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
		order[2].Status = metav1.ConditionFalse // somebody has to do something about it
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
