// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// roster determines the live replicas from the observations of one replica. It does no I/O and has no clock.
type roster struct {
	group, identity string
	lease           time.Duration

	others    map[string]*replica // by identity
	sent      []renewal           // own successful renewals that the cache has not shown yet, oldest first
	renewed   time.Time           // when the last successful renewal began
	confirmed time.Time           // when the last renewal that the cache has shown began: the cache has all earlier changes
	holder    string              // the holder in this replica's own Lease in the cache
}

// replica is the state of another replica's Lease.
type replica struct {
	uid      types.UID
	version  string
	seen     time.Time // when this version was first seen
	duration time.Duration
	swept    time.Time // when its deletion was last requested
}

func (r *replica) deadline() time.Time { return r.seen.Add(r.duration) }

const (
	keepCorpses = 10 // a dead replica's Lease is deleted after this number of its durations
	keepSent    = 10 // the number of renewals to remember: a staler cache shows the last of them in the end
)

// renewal records the result of an own renewal.
func (r *roster) renewal(one renewal) {
	if one.err == nil {
		r.sent = append(r.sent[max(0, len(r.sent)-keepSent):], one)
		r.renewed = one.begun
	}
}

// observe records the cached Leases.
func (r *roster) observe(leases []*unstructured.Unstructured, now time.Time) {
	present := map[string]bool{}
	for _, lease := range leases {
		identity, ok := strings.CutPrefix(lease.GetName(), leaseName(r.group, ""))
		if !ok {
			continue
		}
		if identity == r.identity {
			r.lookAtOwn(lease)
			continue
		}
		present[identity] = true
		other := r.others[identity]
		if other == nil || other.uid != lease.GetUID() || other.version != lease.GetResourceVersion() {
			r.others[identity] = &replica{
				uid: lease.GetUID(), version: lease.GetResourceVersion(), seen: now, duration: durationOf(lease, r.lease),
			}
		}
	}
	for identity := range r.others {
		if !present[identity] {
			delete(r.others, identity)
		}
	}
}

func (r *roster) lookAtOwn(lease *unstructured.Unstructured) {
	r.holder = holderOf(lease)
	i := slices.IndexFunc(r.sent, func(s renewal) bool {
		return s.uid == lease.GetUID() && s.version == lease.GetResourceVersion()
	})
	if i >= 0 {
		r.confirmed = r.sent[i].begun
		r.sent = r.sent[i+1:]
	}
}

// judgement is the set of live replicas at one time.
type judgement struct {
	live    []string  // sorted; empty if this replica is not live
	next    time.Time // when it may change without an event
	doubt   time.Time // if not zero: only a renewal that begins later can show whether a replica is dead
	corpses []string  // identities that have been dead for long
}

func (r *roster) judge(now time.Time) judgement {
	var j judgement
	expires := r.renewed.Add(r.lease)
	if r.confirmed.IsZero() || !now.Before(expires) {
		return j
	}
	j.next = expires
	j.live = append(j.live, r.identity)
	for identity, other := range r.others {
		deadline := other.deadline()
		switch {
		case now.Before(deadline):
			j.live = append(j.live, identity)
			if deadline.Before(j.next) {
				j.next = deadline
			}
		case r.confirmed.Before(deadline):
			j.live = append(j.live, identity)
			if deadline.After(j.doubt) {
				j.doubt = deadline
			}
		case now.Sub(other.seen) >= keepCorpses*other.duration && now.Sub(other.swept) >= other.duration:
			j.corpses = append(j.corpses, identity)
		}
	}
	slices.Sort(j.live)
	return j
}

// precondition returns the precondition that the Lease was not renewed since it was observed.
func (r *replica) precondition() metav1.Preconditions {
	return metav1.Preconditions{UID: &r.uid, ResourceVersion: &r.version}
}
