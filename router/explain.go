// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// maxMoves is the maximum number of moves that the Router remembers for each region.
const maxMoves = 8

// Move is one change of the peer that serves a region. At is the time at which this process learned of the change, and
// By is the layer that it learned the change from.
type Move struct {
	At       time.Time
	From, To region.PeerName
	By       Layer
}

// Explanation is the answer to a look-up of a region, and the reasons for it.
type Explanation struct {
	Region     region.Key
	Route      Route   // zero if Err is set
	Err        error   // why there is no route
	Generation uint64  // of the Directory's Snapshot; zero before the first one
	Layers     []Layer // the layers that were consulted, in order; the last one answered unless Err is set
	Why        []string
	Connection error         // why there is no connection to the peer; nil if there is one, or if Err is set
	Health     region.Health // of the peer; zero without a connection to the peer
	Moves      []Move        // of the region, oldest first
	InFlight   int64         // requests under way, as Options.Budget counts them
	Waiting    int64         // requests that wait
	Streams    int64         // open streams, as Options.Budget counts them
}

// Explain looks up k as Lookup does. It reports which layer answered, how old the answer is, the health of the
// peer, and the result of each consulted layer. Why is text for people: programs must not parse it.
func (r *Router) Explain(ctx context.Context, k region.Key) Explanation {
	e := Explanation{Region: k}
	found, err := r.lookup(ctx, k)
	if err != nil {
		e.Err = err
	} else {
		e.Route = found.Route
		e.InFlight, e.Waiting, e.Streams = found.budget.inFlight.Load(), found.budget.waiting.Load(), found.budget.streams.Load()
	}
	t := r.present()
	e.Generation = t.generation()
	r.mu.Lock()
	e.Moves = slices.Clone(r.moves[k])
	r.mu.Unlock()

	e.source(t)
	if err != nil || e.Route.From != FromSource {
		r.explainLearned(&e)
	}
	if err == nil {
		r.explainPeer(&e)
	}
	return e
}

func (e *Explanation) source(t *table) {
	e.Layers = append(e.Layers, FromSource)
	switch {
	case e.Generation == 0:
		e.because("source: it has listed nothing yet")
	case e.Err == nil && e.Route.From == FromSource:
		e.because("source: peer %s lists the region; nothing else is asked", e.Route.Peer)
	default:
		e.because("source: none of its %d peers lists the region", t.snapshot.Len())
	}
}

func (r *Router) explainLearned(e *Explanation) {
	if r.opts.Cache != nil || e.Route.From == FromCache {
		e.Layers = append(e.Layers, FromCache)
		if e.Route.From == FromCache {
			e.because("cache: peer %s, as an earlier run knew it at %s", e.Route.Peer, e.Route.At.UTC().Format(time.RFC3339))
		} else {
			e.because("cache: nothing")
		}
	}
	if r.opts.Resolver == nil {
		e.because("resolver: not configured")
		return
	}
	if e.Err != nil || e.Route.From == FromResolver {
		e.Layers = append(e.Layers, FromResolver)
	}
	if e.Route.From == FromResolver {
		e.because("resolver: peer %s, as it answered at %s; asked again %s after", e.Route.Peer, e.Route.At.UTC().Format(time.RFC3339), r.opts.Fresh)
	}
	if m, ok := r.asker.last(e.Region); ok {
		e.because("resolver: last answer: %v; asked again not before %s", m.err, m.until.UTC().Format(time.RFC3339))
	}
}

func (r *Router) explainPeer(e *Explanation) {
	conn, err := r.directory.Conn(e.Route.Peer)
	if err != nil {
		e.Connection = err
		e.because("peer %s: no connection: %v", e.Route.Peer, err)
		return
	}
	e.Health = conn.Health()
	line := fmt.Sprintf("peer %s: %s", e.Route.Peer, e.Health.State)
	if !e.Health.Since.IsZero() {
		line += " since " + e.Health.Since.UTC().Format(time.RFC3339)
	}
	if !e.Health.LastContact.IsZero() {
		line += ", last answered at " + e.Health.LastContact.UTC().Format(time.RFC3339)
	}
	line += fmt.Sprintf(", credentials of generation %d", e.Health.Generation)
	if e.Health.Err != nil {
		line += ": " + e.Health.Err.Error()
	}
	if e.Health.Identity != nil {
		line += "; " + e.Health.Identity.Error()
	}
	if e.Health.Rotation != nil {
		line += "; newer credentials are not in use: " + e.Health.Rotation.Error()
	}
	e.because("%s", line)
}

func (e *Explanation) because(format string, args ...any) {
	e.Why = append(e.Why, fmt.Sprintf(format, args...))
}

// String returns one line with the answer, then one line for each reason and for each move. If Err is nil, the last
// line counts the requests.
func (e Explanation) String() string {
	var b strings.Builder
	switch {
	case e.Err != nil:
		fmt.Fprintf(&b, "%s: %v\n", e.Region, e.Err)
	case e.Route.From == FromSource:
		fmt.Fprintf(&b, "%s: peer %s, by the source\n", e.Region, e.Route.Peer)
	default:
		fmt.Fprintf(&b, "%s: peer %s, by the %s, %s old\n", e.Region, e.Route.Peer, e.Route.From, e.Route.Age().Round(time.Second))
	}
	for _, line := range e.Why {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	for _, m := range e.Moves {
		fmt.Fprintf(&b, "  moved from %s to %s at %s, by the %s\n", m.From, m.To, m.At.UTC().Format(time.RFC3339), m.By)
	}
	if e.Err == nil {
		fmt.Fprintf(&b, "  requests: %d under way, %d waiting, %d streams\n", e.InFlight, e.Waiting, e.Streams)
	}
	return b.String()
}
