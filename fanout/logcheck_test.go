// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// unsigned is a log of the first release: its entries do not store their ring.
type unsigned struct{ wal.Log }

func (l unsigned) Begin(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	e.Data = withoutOrigin(e.Data)
	return l.Log.Begin(ctx, e)
}

func (l unsigned) Advance(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	e.Data = withoutOrigin(e.Data)
	return l.Log.Advance(ctx, e)
}

func withoutOrigin(data []byte) []byte {
	var j map[string]any
	if json.Unmarshal(data, &j) != nil {
		return data
	}
	delete(j, "origin")
	data, _ = json.Marshal(j)
	return data
}

// asBegun keeps the first version of an operation's entry.
type asBegun struct {
	wal.Log
	entry wal.Entry
}

func (l *asBegun) Begin(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	l.entry = e
	return l.Log.Begin(ctx, e)
}

// twins returns two rings whose peers have the same names, with the same Account.
func twins(t *testing.T) (own, other *regiontest.Ring, acme string) {
	t.Helper()
	own, other = newRing(t), newRing(t)
	acme = unique("acme")
	for _, r := range []*regiontest.Ring{own, other} {
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		_, err := c.Add(t.Context(), newAccount(acme), fanout.AddOptions{Target: "eu-west"})
		require.NoError(t, err)
		require.NoError(t, c.Wait(t.Context()))
	}
	return own, other, acme
}

// cutAtCommit kills the process of op after the commit of op was applied and before its answer
// arrived. It returns the ID of the open operation.
func cutAtCommit(t *testing.T, r *regiontest.Ring, log *waltest.Memory, op func(context.Context, *fanout.Coordinator) error) string {
	t.Helper()
	ctx, stop := withCancel(t)
	server := r.Server("eu-west")
	server.Inject(regiontest.Fault{Verb: "update", Do: regiontest.CrashAfter(func() {
		server.Partition(true)
		stop()
	})})
	require.Error(t, op(ctx, coordinator(t, r, unsigned{log}, fanout.Options{Cleanup: 50 * time.Millisecond})))
	server.Partition(false)
	server.Reset()
	open := openIDs(t, log)
	require.Len(t, open, 1)
	return open[0]
}

// Entries of the first release do not store their ring. An operation that may be in effect is
// settled only if the peers show it. Otherwise the log is refused and the error names the
// operation, because a recovery in another ring would take the operation's object for removed.
func TestAnUnsignedLogOfAnotherRingIsRefused(t *testing.T) {
	for name, op := range map[string]func(context.Context, *fanout.Coordinator, string) error{
		"add": func(ctx context.Context, c *fanout.Coordinator, acme string) error {
			_, err := c.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
			return err
		},
		"update": func(ctx context.Context, c *fanout.Coordinator, acme string) error {
			_, err := c.Update(ctx, newAccount(acme, "Provider"), fanout.AddOptions{})
			return err
		},
		"remove": func(ctx context.Context, c *fanout.Coordinator, acme string) error {
			_, err := c.Remove(ctx, account.Kind().GroupKind(), key("", acme), fanout.RemoveOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			own, other, acme := twins(t)
			log := waltest.NewMemory()
			id := cutAtCommit(t, own, log, func(ctx context.Context, c *fanout.Coordinator) error { return op(ctx, c, acme) })
			before := openEntry(t, log)

			abroad := coordinator(t, other, log, fanout.Options{})
			resetAll(other)
			_, err := abroad.Recover(t.Context())
			require.ErrorIs(t, err, fanout.ErrOtherLog)
			require.ErrorContains(t, err, id)
			require.ErrorContains(t, err, "--this-ring")
			_, err = abroad.Add(t.Context(), newAccount(unique("beta")), fanout.AddOptions{})
			require.ErrorIs(t, err, fanout.ErrOtherLog)
			require.ErrorIs(t, err, fanout.ErrAborted)
			require.ErrorIs(t, abroad.Identity().CheckLog(t.Context()), fanout.ErrOtherLog)
			_, err = abroad.Resume(t.Context(), id)
			require.ErrorIs(t, err, fanout.ErrOtherLog)

			// The operation is in doubt while a peer that may show it does not answer.
			other.Server("us-east").Partition(true)
			abroad = coordinator(t, other, log, fanout.Options{CallTimeout: 50 * time.Millisecond})
			_, err = abroad.Recover(t.Context())
			require.NotErrorIs(t, err, fanout.ErrOtherLog)
			require.ErrorAs(t, err, new(*fanout.InDoubtError))
			require.ErrorContains(t, err, "us-east")
			require.ErrorAs(t, abroad.Identity().CheckLog(t.Context()), new(*fanout.InDoubtError))
			other.Server("us-east").Partition(false)
			require.Zero(t, writes(other))
			require.Equal(t, before, openEntry(t, log), "it is left as it is")

			again := coordinator(t, own, log, fanout.Options{})
			require.NoError(t, again.Identity().CheckLog(t.Context()))
			settled, err := again.Recover(t.Context())
			require.NoError(t, err)
			require.Len(t, settled, 1)
			require.Equal(t, id, settled[0].ID)
			require.Contains(t, []fanout.State{fanout.Done, fanout.Committed}, settled[0].State)
		})
	}
}

// An operation that was not committed is in effect nowhere, so any ring may settle it.
func TestAnUnsignedLogOfWhatIsInEffectNowhereIsAccepted(t *testing.T) {
	own, other, acme := twins(t)
	first := &asBegun{Log: waltest.NewMemory()}
	_, err := coordinator(t, own, unsigned{first}, fanout.Options{}).Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	log := waltest.NewMemory()
	_, err = log.Begin(t.Context(), first.entry)
	require.NoError(t, err)

	abroad := coordinator(t, other, log, fanout.Options{})
	require.NoError(t, abroad.Identity().CheckLog(t.Context()))
	settled, err := abroad.Recover(t.Context())
	require.NoError(t, err)
	require.Len(t, settled, 1)
	require.Equal(t, fanout.Aborted, settled[0].State)
}

// A person may sign a log as a log of this ring. Then its operations are settled, even if no peer
// shows them.
func TestSignLog(t *testing.T) {
	own, other, acme := twins(t)
	log := waltest.NewMemory()
	id := cutAtCommit(t, own, log, func(ctx context.Context, c *fanout.Coordinator) error {
		_, err := c.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
		return err
	})
	c := coordinator(t, other, log, fanout.Options{})
	require.ErrorIs(t, c.Identity().CheckLog(t.Context()), fanout.ErrOtherLog)
	signed, err := c.Identity().SignLog(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{id}, signed)
	require.NoError(t, c.Identity().CheckLog(t.Context()))
	require.ErrorIs(t, coordinator(t, own, log, fanout.Options{}).Identity().CheckLog(t.Context()), fanout.ErrOtherLog, "it has its ring now")
	signed, err = c.Identity().SignLog(t.Context())
	require.NoError(t, err)
	require.Empty(t, signed)
	settled, err := c.Recover(t.Context())
	require.NoError(t, err)
	require.Len(t, settled, 1)
}

// Two rings share a log, or one has a copy of the other's. An operation that has ended in one ring
// is no result for the same idempotency key in the other ring.
func TestAnEndedOperationOfAnotherRingAnswersNoKey(t *testing.T) {
	add := func(r *regiontest.Ring, log wal.Log, acme string) (*fanout.Operation, error) {
		c := coordinator(t, r, log, fanout.Options{})
		op, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west", IdempotencyKey: "key"})
		require.NoError(t, c.Wait(t.Context()))
		return op, err
	}
	own, other, acme := twins(t)
	log := waltest.NewMemory()
	first, err := add(own, log, acme)
	require.NoError(t, err)
	require.Empty(t, openIDs(t, log))
	plan, err := coordinator(t, other, log, fanout.Options{}).Plan(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west", IdempotencyKey: "key"})
	require.NoError(t, err)
	require.False(t, plan.AlreadyDone)
	abroad, err := add(other, log, acme)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, abroad.ID)
	read(t, conn(t, other, "eu-west").Dynamic().Resource(serviceClusterResource).Namespace(acme), "db")

	// Each ring returns its own first result again.
	for r, want := range map[*regiontest.Ring]*fanout.Operation{own: first, other: abroad} {
		again, err := add(r, log, acme)
		require.NoError(t, err)
		require.Equal(t, want.ID, again.ID)
	}
	_, err = coordinator(t, other, log, fanout.Options{}).Outcome(t.Context(), "key")
	require.ErrorIs(t, err, fanout.ErrOtherLog)

	// An operation of the first release is the result for its key if the peers show the
	// operation; otherwise the key is refused.
	old := waltest.NewMemory()
	own, other, acme = twins(t)
	first, err = add(own, unsigned{old}, acme)
	require.NoError(t, err)
	again, err := add(own, old, acme)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	_, err = add(other, old, acme)
	require.ErrorIs(t, err, fanout.ErrOtherLog)
	require.ErrorContains(t, err, first.ID)
	require.ErrorContains(t, err, "choose a new key")
}

// A removal of the first release leaves no trace in the peers. It is the result for its key if no
// peer has the object.
func TestAnEndedUnsignedRemovalAnswersWhereNothingStands(t *testing.T) {
	own, other, acme := twins(t)
	log := waltest.NewMemory()
	remove := func(r *regiontest.Ring, log wal.Log) (*fanout.Operation, error) {
		return coordinator(t, r, log, fanout.Options{}).Remove(t.Context(), account.Kind().GroupKind(), key("", acme), fanout.RemoveOptions{IdempotencyKey: "key"})
	}
	first, err := remove(own, unsigned{log})
	require.NoError(t, err)
	again, err := remove(own, log)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	_, err = remove(other, log)
	require.ErrorIs(t, err, fanout.ErrOtherLog)
	read(t, conn(t, other, "eu-west").Dynamic().Resource(accountResource), acme)
}

func resetAll(r *regiontest.Ring) {
	for _, p := range peers {
		r.Server(p).Reset()
	}
}

func openEntry(t *testing.T, log wal.Log) (open wal.Entry) {
	t.Helper()
	for e, err := range log.Open(t.Context()) {
		require.NoError(t, err)
		open = e
	}
	return open
}
