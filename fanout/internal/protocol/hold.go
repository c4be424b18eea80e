// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// If a plain delete (such as kubectl delete) of a home counted as a removal, it would delete every
// replica. So it commits nothing and only requests a removal. A sweep (a check and repair of all
// peers) that finds the request holds it in three cases: the namespace that the object owns has
// objects, its objects cannot be listed in a member, or more removals are requested at once than the
// limit allows. The commit is the stage Removing, as for any removal; until then the
// object stays in effect everywhere.

// HoldReason is the reason why a requested removal is held.
type HoldReason string

const (
	// HoldOccupied: the namespace has objects. The hold ends when they are gone.
	HoldOccupied HoldReason = "Occupied"
	// HoldUnknown: the objects of the namespace could not be listed in a member. The hold ends when
	// they were listed in all members.
	HoldUnknown HoldReason = "Unknown"
	// HoldTooMany: more removals are requested than the limit allows. The hold ends when a person
	// releases the removal.
	HoldTooMany HoldReason = "TooMany"
)

// Held is the reason why a requested removal is held. The zero value means that the object shows no
// hold.
type Held struct {
	Reason HoldReason
	Text   string // for people
}

// Limit bounds the removals that plain deletes may request at once in one peer. They are held if
// their number exceeds Objects and also exceeds the fraction Share of the peer's homes. A negative
// Objects means no limit.
type Limit struct {
	Objects int
	Share   float64
}

// Requests counts the homes of the kind in a peer, and those whose removal a plain delete
// requests. It does not count requests that a person released.
type Requests struct {
	Homes, Requested int
	// Settling: the request is so young that more requests of the same deletion may follow.
	Settling bool
}

// Exceeded reports whether r is more than the limit.
func (l Limit) Exceeded(r Requests) bool {
	return l.Objects >= 0 && r.Requested > l.Objects && float64(r.Requested) > l.Share*float64(r.Homes)
}

// A holdJob decides about the removal that a plain delete of a home requests.
type holdJob struct{ m *Machine }

// begin decides about the removal that a plain delete of the home requests.
func (j holdJob) begin() {
	m := j.m
	m.Record.Committed = false
	switch {
	case m.Primary.Released:
		j.commitRequest()
	case m.Primary.Held.Reason == HoldTooMany:
		// Only a person ends this hold. It stays when the number of requests falls below the limit,
		// because other removals were released or are done.
		j.postpone(m.Primary.Held)
	default:
		m.HaveSet = false
		m.enter(counting)
		m.spawn(taskLook, m.Record.Primary.Peer)
		m.spawn(taskCount, m.Record.Primary.Peer)
	}
}

// A countTask counts the removals that plain deletes request in one peer.
type countTask struct{ strand }

func (s countTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step != stepCount:
		s.send(stepCount, Command{Verb: Count, Peer: s.Peer, Object: m.Primary})
	case r.Code == OK:
		m.Requests = r.Requests
		s.finish()
	case r.Code == Denied || !s.again(stepRetry):
		s.unconfirmed()
	}
}

func (j holdJob) afterCounting() {
	m := j.m
	home := m.Record.Primary.Peer
	switch {
	case len(m.Result.Pending) > 0:
		m.end(Done)
	case !m.HaveSet:
		m.pend(home)
		m.end(Done)
	case m.Requests.Settling:
		j.keepInEffect()
	case m.Op.Limit.Exceeded(m.Requests):
		j.postpone(Held{HoldTooMany, fmt.Sprintf("%d of %d were deleted at once in %s, at most %d may be",
			m.Requests.Requested, m.Requests.Homes, home, max(m.Op.Limit.Objects, int(m.Op.Limit.Share*float64(m.Requests.Homes))))})
	case !m.Op.Holds:
		j.commitRequest()
	default:
		members := m.Set.reached()
		m.enter(listing)
		for _, p := range members {
			m.spawn(taskList, p)
		}
		if !slices.Contains(members, home) {
			m.spawn(taskList, home)
		}
	}
}

// weigh holds the requested removal if the namespace has objects, or if its objects could not be
// listed in a member. Otherwise it commits the removal. A sweep that stops or expires does neither.
func (j holdJob) weigh() {
	m := j.m
	occupants, silent := m.Result.Occupants, m.Result.Pending
	m.Result.Occupants, m.Result.Pending = nil, nil
	switch {
	case m.Expired, m.Stopping:
		j.keepInEffect()
	case len(occupants) > 0:
		j.postpone(Held{HoldOccupied, inhabited(occupants, silent)})
	case len(silent) > 0:
		j.postpone(Held{HoldUnknown, inhabited(nil, silent)})
	default:
		j.commitRequest()
	}
}

// commitRequest marks the home Removing.
func (j holdJob) commitRequest() {
	m := j.m
	m.Stopping, m.Unsure = false, false
	m.enter(committing)
	m.spawn(taskMark, m.Record.Primary.Peer)
}

// postpone records on the home why its removal is held, unless the home already shows it.
func (j holdJob) postpone(h Held) {
	m := j.m
	m.Result.Held = h
	if m.Primary.Held == h {
		j.keepInEffect()
		return
	}
	m.enter(postponing)
	m.spawn(taskHold, m.Record.Primary.Peer)
}

// A holdTask records on the home why its removal is held.
type holdTask struct{ strand }

func (s holdTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step == stepStart:
		o := m.Primary
		o.Held = m.Result.Held
		s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
	case r.Class == Applied:
		m.Primary = r.Object
		s.finish()
	case r.Code == Conflict, r.Code == NotFound:
		// The next sweep reads the home again.
		s.finish()
	default:
		s.unconfirmed()
	}
}

// keepInEffect keeps the object in effect everywhere, as if no removal were requested.
func (j holdJob) keepInEffect() {
	m := j.m
	m.Record.Committed = true
	m.Result.Reason, m.Result.Peer = "", ""
	m.HaveSet = false
	bringJob{m}.begin()
}

// mostNamed bounds how many peers and objects the text of a hold names.
const mostNamed = 8

// inhabited returns a text for people: the number of objects in each peer, and the peers that did
// not reply.
func inhabited(occupants []Occupant, silent []string) string {
	count := map[string]int{}
	guards := !slices.ContainsFunc(occupants, func(o Occupant) bool { return !o.Guard })
	for _, o := range occupants {
		if o.Guard && !guards {
			continue
		}
		count[o.Resource+" in "+o.Peer]++
	}
	var parts []string
	for at, n := range count {
		parts = append(parts, fmt.Sprintf("%d %s", n, at))
	}
	slices.SortFunc(parts, func(a, b string) int {
		_, a, _ = strings.Cut(a, " ")
		_, b, _ = strings.Cut(b, " ")
		return strings.Compare(a, b)
	})
	text := bounded(parts)
	if len(silent) == 0 {
		return text
	}
	silent = slices.Sorted(slices.Values(silent))
	if text != "" {
		text += "; "
	}
	return text + "no answer from " + bounded(silent)
}

func bounded(all []string) string {
	text := strings.Join(all[:min(len(all), mostNamed)], ", ")
	if more := len(all) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
