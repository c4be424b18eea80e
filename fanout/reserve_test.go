// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// stop starts an add by a coordinator with the given identity, and abandons the add, as a crash
// does, at the first command for which the function before returns true. It returns the
// operation's ID and log.
func stop(t testing.TB, r *regiontest.Ring, obj fanout.Object, opts fanout.AddOptions, identity string, before func(fanout.StepEvent) bool) (string, *waltest.Memory) {
	t.Helper()
	ctx, crash := withCancel(t)
	door := &door{Ring: r}
	var once sync.Once
	var id string
	log := waltest.NewMemory()
	c := coordinator(t, door, abandoned{log, door}, fanout.Options{Identity: identity, Observer: &fanout.Observer{
		Step: func(_ context.Context, e fanout.StepEvent) {
			if !e.Done && before(e) {
				once.Do(func() {
					id = e.Operation
					door.shut()
					crash()
				})
			}
		},
	}})
	_, err := c.Add(ctx, obj, opts)
	require.Error(t, err)
	require.NotEmpty(t, id)
	return id, log
}

// reserve leaves the Reserved primary and the secondaries of an add behind.
func reserve(t testing.TB, r *regiontest.Ring, namespace, name string, target region.PeerName, identity string) string {
	t.Helper()
	id, _ := stop(t, r, newServiceCluster(namespace, name), fanout.AddOptions{Target: target}, identity, func(e fanout.StepEvent) bool {
		return e.Verb == "advance"
	})
	return id
}

// removeHeld removes a ServiceCluster whose deletion a finalizer of another controller blocks. It
// returns after the removal has marked the object Removing and sent the delete.
func removeHeld(t testing.TB, r *regiontest.Ring, namespace, name, identity string) *fanout.Operation {
	t.Helper()
	ctx, cancel := withCancel(t)
	defer cancel()
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Identity: identity, Observer: &fanout.Observer{
		Step: func(_ context.Context, e fanout.StepEvent) {
			if e.Done && e.Verb == "delete" {
				cancel()
			}
		},
	}})
	op, err := c.Remove(ctx, serviceClusters, key(namespace, name), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, op.State)
	return op
}

// door is a ring that has no connections once it is shut.
type door struct {
	*regiontest.Ring
	mu     sync.Mutex
	closed bool
}

func (g *door) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (g *door) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

func (g *door) Conn(name region.PeerName) (*region.Conn, error) {
	if g.isShut() {
		return nil, region.ErrUnknownPeer
	}
	return g.Ring.Conn(name)
}

// abandoned is a log that rejects writes after its process has crashed.
type abandoned struct {
	wal.Log
	door *door
}

func (a abandoned) Advance(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	if a.door.isShut() {
		return e, wal.ErrClosed
	}
	return a.Log.Advance(ctx, e)
}

func (a abandoned) End(ctx context.Context, e wal.Entry, outcome []byte) error {
	if a.door.isShut() {
		return wal.ErrClosed
	}
	return a.Log.End(ctx, e, outcome)
}
