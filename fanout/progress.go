// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// ProgressState is the state of an operation in one peer.
type ProgressState string

const (
	// ProgressAsked: a read was sent to the peer.
	ProgressAsked ProgressState = "asked"
	// ProgressReserving: a create was sent to the peer.
	ProgressReserving ProgressState = "reserving"
	// ProgressHeld: the peer holds the name for the operation.
	ProgressHeld ProgressState = "held"
	// ProgressCommitting: the write that commits was sent to the peer.
	ProgressCommitting ProgressState = "committing"
	// ProgressCommitted: the write that commits was applied.
	ProgressCommitted ProgressState = "committed"
	// ProgressActivating: the object is being activated.
	ProgressActivating ProgressState = "activating"
	// ProgressConfirmed: the peer has confirmed the operation.
	ProgressConfirmed ProgressState = "confirmed"
	// ProgressClearing: the object is being deleted.
	ProgressClearing ProgressState = "clearing"
	// ProgressCleared: the peer holds nothing of the operation.
	ProgressCleared ProgressState = "cleared"
)

// PeerProgress is the progress of an operation in one peer.
type PeerProgress struct {
	Operation string
	Kind      schema.GroupKind
	Key       types.NamespacedName
	Peer      region.PeerName
	State     ProgressState
	// Since is when the operation reached State in the peer.
	Since time.Time
	// Unanswered is the time since which the peer has owed an answer: the time at which a request was
	// sent, or at which the peer last answered another request. It is zero if every request was
	// answered. Every request is unanswered for some milliseconds.
	Unanswered time.Time
	// Err is why the last request to the peer failed, if it did.
	Err error
	// Finalizers are the finalizers of other controllers for which the operation waits in the
	// peer.
	Finalizers []string
}

// Progress converts the steps of operations into the state of each operation in each peer, for
// people who wait. Its methods Step and End are hooks of an Observer:
//
//	progress := fanout.NewProgress(nil)
//	options.Observer = &fanout.Observer{Step: progress.Step, End: progress.End}
//
// It is safe for concurrent use.
type Progress struct {
	changed func(PeerProgress)

	mu         sync.Mutex
	operations map[string]map[region.PeerName]*peerProgress
}

type peerProgress struct {
	PeerProgress
	outstanding int
}

// NewProgress returns an empty Progress. It calls changed whenever an operation reaches another
// state in a peer, without a lock held and possibly from many goroutines; changed must return
// quickly, and may be nil.
func NewProgress(changed func(PeerProgress)) *Progress {
	if changed == nil {
		changed = func(PeerProgress) {}
	}
	return &Progress{changed: changed, operations: map[string]map[region.PeerName]*peerProgress{}}
}

// Step records one step. It ignores the steps of sweeps.
func (p *Progress) Step(_ context.Context, e StepEvent) {
	if e.Peer == "" || e.Action == string(protocol.Sweep) {
		return // no caller waits for a sweep
	}
	for _, changed := range p.step(e, time.Now()) {
		p.changed(changed)
	}
}

// End drops an operation that has ended.
func (p *Progress) End(_ context.Context, e EndEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.operations, e.Operation)
}

// Peers returns the progress of all operations under way, ordered by operation and peer.
func (p *Progress) Peers() []PeerProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []PeerProgress
	for _, operation := range slices.Sorted(maps.Keys(p.operations)) {
		peers := p.operations[operation]
		for _, peer := range slices.Sorted(maps.Keys(peers)) {
			all = append(all, peers[peer].PeerProgress)
		}
	}
	return all
}

func (p *Progress) step(e StepEvent, now time.Time) (changed []PeerProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	peers := p.operations[e.Operation]
	if peers == nil {
		peers = map[region.PeerName]*peerProgress{}
		p.operations[e.Operation] = peers
	}
	at := peers[e.Peer]
	if at == nil {
		at = &peerProgress{PeerProgress: PeerProgress{
			Operation: e.Operation, Kind: e.Kind, Key: e.Key, Peer: e.Peer, State: ProgressAsked, Since: now,
		}}
		peers[e.Peer] = at
	}
	to := func(at *peerProgress, state ProgressState) {
		if at.State != state {
			at.State, at.Since = state, now
			changed = append(changed, at.PeerProgress)
		}
	}
	if !e.Done {
		at.outstanding++
		if at.Unanswered.IsZero() {
			at.Unanswered = now
		}
		to(at, begun(e, at.State))
		return changed
	}
	at.outstanding--
	at.Err, at.Finalizers = e.Err, e.Finalizers
	if e.Code != string(protocol.Unavailable) {
		at.Unanswered = time.Time{}
		if at.outstanding > 0 {
			at.Unanswered = now
		}
	}
	to(at, ended(e, at.State))
	if at.State == ProgressCommitted && e.Stage == string(protocol.Configured) {
		// An object is Configured only after its guards exist, so their peers have confirmed.
		for _, peer := range slices.Sorted(maps.Keys(peers)) {
			if peers[peer].State == ProgressHeld {
				to(peers[peer], ProgressConfirmed)
			}
		}
	}
	return changed
}

// begun returns the state after a command was sent.
func begun(e StepEvent, was ProgressState) ProgressState {
	switch protocol.Verb(e.Verb) {
	case protocol.Create:
		return ProgressReserving
	case protocol.Delete, protocol.Release:
		return ProgressClearing
	case protocol.Activate:
		return ProgressActivating
	case protocol.Put:
		switch {
		case e.Stage == string(protocol.Reserved): // a sign of life
			return was
		case e.Stage == string(protocol.Removing) && (was == ProgressCommitted || was == ProgressClearing || was == ProgressCleared):
			return ProgressClearing // the last write, which removes the protocol's finalizer
		case e.Role == "secondary":
			return ProgressActivating
		default:
			return ProgressCommitting
		}
	default:
		return was
	}
}

// ended returns the state of a peer after a command there was answered. was is the state before. A reply
// other than OK changes nothing, but NotFound confirms a deletion.
func ended(e StepEvent, was ProgressState) ProgressState {
	absent := e.Code == string(protocol.NotFound)
	if e.Code != string(protocol.OK) && (!absent || was != ProgressClearing) {
		return was
	}
	switch protocol.Verb(e.Verb) {
	case protocol.Create:
		return ProgressHeld
	case protocol.Activate:
		return ProgressConfirmed
	case protocol.Delete:
		return ProgressCleared
	case protocol.Read:
		if absent {
			return ProgressCleared
		}
	case protocol.Put:
		switch was {
		case ProgressCommitting:
			return ProgressCommitted
		case ProgressClearing:
			return ProgressCleared
		}
	}
	return was
}
