// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"iter"
	"time"
)

// Ring keeps the peers of a Source connected and probes their health. It is a Directory.
type Ring struct{ synced chan struct{} }

// Options adjust a Ring. The zero value works.
type Options struct {
	Probe    ProbeOptions
	Drain    time.Duration // how long streams of replaced credentials may go on; zero: 5 minutes
	Observer *Observer
}

// ProbeOptions say how health is probed. The zero value works.
type ProbeOptions struct {
	Interval   time.Duration // between probes of a healthy peer; zero: 10 s
	Timeout    time.Duration // of one probe; zero: 5 s
	Failures   int           // in a row, to go down; zero: 3
	Successes  int           // in a row, to come back; zero: 2
	MaxBackoff time.Duration // between probes of a peer that fails; zero: 30 s
}

// NewRing makes a Ring of the peers that src names. It does no I/O and starts nothing; see Start.
func NewRing(src Source, opts Options) (*Ring, error) { return &Ring{synced: make(chan struct{})}, nil }

// Start runs until ctx ends, waits for all it started, then returns. Call once.
func (r *Ring) Start(ctx context.Context) error { return nil }

// Synced is closed when the first Snapshot is in place. It does not wait for any peer to answer.
func (r *Ring) Synced() <-chan struct{} { return r.synced }

// Snapshot returns the present view, empty before the first one.
func (r *Ring) Snapshot() *Snapshot { return emptySnapshot() }

// Watch yields the present Snapshot, as soon as there is one, then the newest after each change, until ctx ends.
func (r *Ring) Watch(ctx context.Context) iter.Seq[*Snapshot] { return func(func(*Snapshot) bool) {} }

// Conn returns the connection to a peer, or ErrUnknownPeer.
func (r *Ring) Conn(name PeerName) (*Conn, error) { return nil, ErrUnknownPeer }
