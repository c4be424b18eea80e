// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// pendingPeers returns the peers for which op has an error, because they have not confirmed the
// operation.
func pendingPeers(op *fanout.Operation) []region.PeerName {
	var pending []region.PeerName
	for o := range op.Peers.All() {
		if o.Err != nil {
			pending = append(pending, o.Peer)
		}
	}
	return pending
}

// A removal is committed, and has not reached one peer yet. If another removal is called with the
// same idempotency key, it returns an error. If the same removal is called again, it returns the
// operation.
func TestAnOpenIdempotencyKeyIsOfOneRequest(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	name := addAccount(t, c)
	r.Partition("us-east", true)
	op, err := c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{Unreachable: fanout.Forward, IdempotencyKey: "k"})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, op.State)

	_, err = c.Remove(t.Context(), accounts, key("", "another"), fanout.RemoveOptions{IdempotencyKey: "k"})
	require.ErrorContains(t, err, "idempotency key")
	again, err := c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{Unreachable: fanout.Forward, IdempotencyKey: "k"})
	require.NoError(t, err)
	require.Equal(t, op.ID, again.ID)
}

// gate is a log whose Begin waits until the expected number of calls of Begin have arrived.
type gate struct {
	wal.Log
	arrived sync.WaitGroup
}

func (g *gate) Begin(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	g.arrived.Done()
	g.arrived.Wait()
	return g.Log.Begin(ctx, e)
}

// Two adds run at once with one idempotency key. Each of them returns nil or an *InDoubtError, and
// the operation of the key is Done afterwards.
func TestOneIdempotencyKeyAtOnce(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	log := &gate{Log: waltest.NewMemory()}
	log.arrived.Add(2)
	c := coordinator(t, r, log, fanout.Options{})
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", IdempotencyKey: "k"})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if _, inDoubt := errors.AsType[*fanout.InDoubtError](err); !inDoubt {
			require.NoError(t, err)
		}
		require.NotErrorIs(t, err, fanout.ErrAborted)
	}
	require.True(t, errs[0] == nil || errs[1] == nil, "%v", errs)
	op, err := c.Outcome(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
}

// Outcome returns an *InDoubtError while a call of Add works on the operation.
func TestOutcomeOfAnOperationAtWork(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	var c *fanout.Coordinator
	var asked sync.Once
	var told error
	c = coordinator(t, r, waltest.NewMemory(), fanout.Options{Observer: &fanout.Observer{
		Step: func(ctx context.Context, e fanout.StepEvent) {
			if !e.Done || e.Verb != "create" {
				return
			}
			asked.Do(func() {
				_, told = c.Outcome(ctx, e.Operation)
			})
		},
	}})
	op, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	inDoubt, ok := errors.AsType[*fanout.InDoubtError](told)
	require.True(t, ok, "%v", told)
	require.Equal(t, op.ID, inDoubt.Operation)
}

// A younger add gives way to an older one, and succeeds after the older add was aborted. Outcome
// finds the younger add under the ID that its caller got.
func TestOutcomeAfterGivingWay(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	const lease = 5 * time.Second
	reserved, goOn := make(chan struct{}), make(chan struct{})
	var first sync.Once
	older := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: lease, Observer: &fanout.Observer{
		Step: func(_ context.Context, e fanout.StepEvent) {
			if e.Done && e.Verb == "create" {
				first.Do(func() { close(reserved); <-goOn })
			}
		},
	}})
	ctx, cancel := withCancel(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := older.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		require.ErrorIs(t, err, fanout.ErrAborted)
	})
	<-reserved
	var gaveWay sync.Once
	younger := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: lease, Observer: &fanout.Observer{
		Step: func(_ context.Context, e fanout.StepEvent) {
			if e.Done && e.Verb == "delete" {
				gaveWay.Do(func() { cancel(); close(goOn) })
			}
		},
	}})
	op, err := younger.Add(within(t, 30*time.Second), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
	wg.Wait()
	require.NoError(t, err)
	got, err := younger.Outcome(t.Context(), op.ID)
	require.NoError(t, err)
	require.Equal(t, op.ID, got.ID)
}

// An update with the content that the object has already is Committed and not Done while a peer
// does not answer. Its result names this peer.
func TestAlreadyDoneNamesWhoIsBehind(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	name := addAccount(t, c)
	r.Partition("us-east", true)
	op, err := c.Update(t.Context(), newAccount(name), fanout.AddOptions{})
	require.NoError(t, err)
	require.True(t, op.AlreadyDone)
	require.Equal(t, []region.PeerName{"us-east"}, pendingPeers(op))
	require.Equal(t, fanout.Committed, op.State)
}

// If a member is not configured in the coordinator of an update, the update is Committed, and its
// result names this member.
func TestAMemberThatIsNotConfiguredIsPending(t *testing.T) {
	r := newRing(t)
	name := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	c := coordinator(t, some(t, r, "ap-south", "eu-west"), waltest.NewMemory(), fanout.Options{})
	op, err := c.Update(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, op.State)
	require.Equal(t, []region.PeerName{"us-east"}, pendingPeers(op))
}

// A peer does not confirm the commit of a removal, and another coordinator then adds an object in
// the namespace. Recover does not send the commit again, but returns an *OccupiedError.
func TestARemovalInDoubtNamesItsOccupants(t *testing.T) {
	r := newRing(t)
	other := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	name := addAccount(t, other)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{Cleanup: time.Millisecond})
	server := r.Server("ap-south")
	server.Inject(regiontest.Fault{Verb: "update", Resource: resourceOf(key("", name)).GroupResource(), Times: -1, Do: regiontest.Refuse(503)})
	_, err := c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{})
	_, inDoubt := errors.AsType[*fanout.InDoubtError](err)
	require.True(t, inDoubt, "%v", err)
	require.NotErrorIs(t, err, fanout.ErrAborted)
	server.Reset()
	_, err = other.Add(t.Context(), newServiceCluster(name, "db"), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	_, err = c.Recover(t.Context())
	occupied, ok := errors.AsType[*fanout.OccupiedError](err)
	require.True(t, ok, "%v", err)
	require.NotEmpty(t, occupied.Occupants)
	for _, o := range occupied.Occupants {
		require.Equal(t, key(name, "db"), o.Key)
	}
	require.NotContains(t, err.Error(), "no answer")
}

// A process dies after it logged that a removal's commit may be sent, and before it sent the
// commit: the removal is in doubt. Recovery does not send the commit while the namespace holds
// objects that were added after the process had died. Once these objects are gone, recovery
// finishes the removal.
func TestARemovalThatDiedAsItBeganToCommitWaitsForWhatCameIn(t *testing.T) {
	r := newRing(t)
	other := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	name := addAccount(t, other)
	stop := newCrash(0, false)
	stop.of = func(e fanout.StepEvent) bool { return e.Verb == "put" && e.Stage == "Removing" }
	log := waltest.NewMemory()
	doomed := coordinator(t, r, log, fanout.Options{Observer: &fanout.Observer{Step: stop.step}, Cleanup: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() {
		_, err := doomed.Remove(ctx, accounts, key("", name), fanout.RemoveOptions{})
		returned <- err
	}()
	<-stop.stopped
	_, err := other.Add(t.Context(), newServiceCluster(name, "db"), fanout.AddOptions{Target: "eu-west", Durable: true})
	require.NoError(t, err)

	next := log.Reopen()
	successor := coordinator(t, r, next, fanout.Options{})
	for range 2 {
		_, err = successor.Recover(t.Context())
		_, inDoubt := errors.AsType[*fanout.InDoubtError](err)
		occupied, ok := errors.AsType[*fanout.OccupiedError](err)
		require.True(t, inDoubt && ok, "%v", err)
		require.False(t, occupied.Committed)
		requireClean(t, successor)
	}
	_, err = other.Remove(t.Context(), serviceClusters, key(name, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	_, err = successor.Recover(t.Context())
	require.NoError(t, err)
	requireSettled(t, next)
	requireClean(t, successor)
	_, err = other.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{})
	require.ErrorIs(t, err, fanout.ErrNotFound)

	heal := cut(r)
	cancel()
	close(stop.release)
	t.Logf("the dead process would have said: %v", <-returned)
	heal()
}

// The name of an object that owns a namespace must be a valid name of a namespace.
func TestAnAccountHasANamespaceName(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	_, err := c.Add(t.Context(), newAccount("acme.example"), fanout.AddOptions{})
	require.ErrorContains(t, err, "metadata.name")
	requireClean(t, c)
}

// An object whose API version differs from that of its Kind is rejected.
func TestAnotherVersionIsRefused(t *testing.T) {
	c := coordinator(t, newRing(t), waltest.NewMemory(), fanout.Options{})
	account := newAccount(unique("acme"))
	account.SetAPIVersion("catalog.kubecarrier.io/v9")
	_, err := c.Add(t.Context(), account, fanout.AddOptions{})
	require.ErrorContains(t, err, "v1alpha1")
}

// If the log fails, the error of Add names the log and no peer.
func TestAFailingLogIsNamed(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	log.FailNext(false, errors.New("disk full"))
	_, err := c.Add(t.Context(), newAccount(unique("acme")), fanout.AddOptions{})
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorContains(t, err, "write-ahead log")
	require.ErrorContains(t, err, "disk full")
	require.NotContains(t, err.Error(), "peer")
}

// stale is a log. Its Open lists all entries that were begun, also ended ones, in the state that
// Begin returned.
type stale struct {
	wal.Log
	mu    sync.Mutex
	begun []wal.Entry
}

func (s *stale) Begin(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	e, err := s.Log.Begin(ctx, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = append(s.begun, e)
	return e, err
}

func (s *stale) Open(context.Context) iter.Seq2[wal.Entry, error] {
	return func(yield func(wal.Entry, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, e := range s.begun {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// The log lists two outdated entries: the operation of one has ended, and that of the other has
// been committed since. Recover reads each entry again. It skips the ended operation, and completes
// the committed one.
func TestARecoveryLooksAgain(t *testing.T) {
	r := newRing(t)
	name := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	memory := waltest.NewMemory()
	c := coordinator(t, r, &stale{Log: memory}, fanout.Options{})
	done, err := c.Update(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	r.Partition("us-east", true)
	behind, err := c.Update(t.Context(), newAccount(name, "Tenant", "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, behind.State)
	r.Partition("us-east", false)

	ops, err := c.Recover(t.Context())
	require.NoError(t, err)
	require.Len(t, ops, 1)
	require.Equal(t, behind.ID, ops[0].ID)
	require.Equal(t, fanout.Done, ops[0].State)
	requireSettled(t, memory)
	got, err := c.Outcome(t.Context(), done.ID)
	require.NoError(t, err)
	require.Equal(t, fanout.Done, got.State)
}

// A removal without effect reports all peers as unchanged. An add in doubt reports all peers as
// pending, each with an error.
func TestPeersOfAnOperationThatCameToNothing(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Cleanup: time.Second})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)

	op, err := c.Remove(t.Context(), accounts, key("", acme), fanout.RemoveOptions{})
	require.Error(t, err)
	for o := range op.Peers.All() {
		require.Equal(t, fanout.PeerUnchanged, o.Value, "%s still has the Account", o.Peer)
	}

	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{UID: "another"})
	require.ErrorIs(t, err, fanout.ErrNotFound)
	require.ErrorContains(t, err, "peer us-east holds it under UID")

	var once sync.Once
	cutOff := coordinator(t, r, waltest.NewMemory(), fanout.Options{
		Cleanup: 50 * time.Millisecond,
		Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
			if e.Verb == "put" && e.Stage == "Configured" && !e.Done {
				once.Do(func() { r.Partition("us-east", true) })
			}
		}},
	})
	op, err = cutOff.Add(within(t, time.Second), newServiceCluster(acme, "in-doubt"), fanout.AddOptions{Target: "us-east"})
	if _, inDoubt := errors.AsType[*fanout.InDoubtError](err); inDoubt {
		for o := range op.Peers.All() {
			require.Equal(t, fanout.PeerPending, o.Value, o.Peer)
			require.Error(t, o.Err)
		}
	} else {
		require.ErrorIs(t, err, fanout.ErrAborted, "a connection that is refused applies nothing")
	}
	r.Partition("us-east", false)
	_, err = cutOff.Recover(t.Context())
	require.NoError(t, err)
	awaitClean(t, c)
}
