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

// roster is who is alive, judged by what one replica has seen and when. It does no I/O and has no clock.
type roster struct {
	group, identity string
	lease           time.Duration

	others    map[string]*replica // by identity
	sent      []renewal           // our successful ones that the copy has not shown yet, oldest first
	renewed   time.Time           // when the last successful one began
	confirmed time.Time           // when the last one began that the copy has shown: it holds all that happened before
	holder    string              // of our own Lease in the copy
}

// replica is another one, as its Lease tells.
type replica struct {
	uid      types.UID
	version  string
	seen     time.Time // when that version was first seen
	duration time.Duration
	swept    time.Time // when we last asked for its deletion
}

func (r *replica) deadline() time.Time { return r.seen.Add(r.duration) }

const (
	keepCorpses = 10 // durations
	keepSent    = 10 // renewals: a copy that lags further behind shows the last one in the end
)

// renewal notes what became of one of ours.
func (r *roster) renewal(one renewal) {
	if one.err == nil {
		r.sent = append(r.sent[max(0, len(r.sent)-keepSent):], one)
		r.renewed = one.begun
	}
}

// look notes what the copy shows.
func (r *roster) look(leases []*unstructured.Unstructured, now time.Time) {
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

// judgement is who is alive at one time.
type judgement struct {
	live    []string  // sorted; empty if we are not among them
	next    time.Time // when time alone may change this
	doubt   time.Time // not zero: only a renewal that begins after it can show whether somebody has died
	corpses []string  // dead for long
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

// precondition is that nobody has renewed the Lease since.
func (r *replica) precondition() metav1.Preconditions {
	return metav1.Preconditions{UID: &r.uid, ResourceVersion: &r.version}
}
