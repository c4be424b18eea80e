// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// judged returns the judgements and rules of an explanation, by peer. It requires a Text and a
// Next for every peer.
func judged(t *testing.T, e *fanout.Explanation) map[region.PeerName]string {
	t.Helper()
	text, err := os.ReadFile("../docs/fanout-specification.md")
	require.NoError(t, err)
	all := map[region.PeerName]string{}
	for _, p := range e.Peers {
		all[p.Peer] = p.Judgement + " by " + p.Rule
		require.NotEmpty(t, p.Text)
		require.NotEmpty(t, p.Next)
		require.Regexp(t, `(?m)(^## |\*\*|^\| )`+p.Rule+`\b`, string(text), "the rule is in docs/fanout-specification.md")
	}
	require.NotEmpty(t, e.Text)
	require.NotEmpty(t, e.Next)
	return all
}

func TestExplain(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{Identity: "me/1"})
	acme := addAccount(t, c)
	stranger := coordinator(t, r, waltest.NewMemory(), fanout.Options{Identity: "stranger/1"})

	op, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)
	for _, who := range []*fanout.Coordinator{c, stranger} {
		e, err := who.Explain(t.Context(), op.ID)
		require.NoError(t, err)
		require.Equal(t, fanout.Done, e.State)
		require.Equal(t, "me/1", e.Coordinator)
		require.Equal(t, "add", e.Action)
		require.Equal(t, key(acme, "db"), e.Key)
		require.Equal(t, map[region.PeerName]string{
			"ap-south": "guard by I2", "eu-west": "guard by I2", "us-east": "primary by I3",
		}, judged(t, e))
	}
	_, err = c.Explain(t.Context(), "unheard-of")
	require.ErrorIs(t, err, fanout.ErrUnknownOperation)

	// A guard was deleted by hand: Explain reports the guard as missing.
	require.NoError(t, clusters(t, r, "eu-west", acme).Delete(t.Context(), "db", metav1.DeleteOptions{}))
	e, err := stranger.Explain(t.Context(), op.ID)
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, e.State)
	require.Equal(t, "missing by I2", judged(t, e)["eu-west"])
	_, err = c.Sweep(t.Context())
	require.NoError(t, err)

	// A peer does not answer: Explain reports the operation as in doubt.
	r.Partition("us-east", true)
	e, err = c.Explain(t.Context(), op.ID)
	require.NoError(t, err)
	require.Equal(t, fanout.InDoubt, e.State)
	require.Contains(t, e.Log, "ended: Done")
	require.Equal(t, "undecidable by Judging a secondary", judged(t, e)["ap-south"])
	require.Equal(t, "undecidable by Judging a secondary", judged(t, e)["us-east"])
	require.Error(t, e.Peers[2].Err)
	_, err = c.Explain(t.Context(), "unheard-of")
	require.ErrorIs(t, err, fanout.ErrUnknownOperation)
	require.ErrorIs(t, err, region.ErrUnavailable, "it may be known there")
	r.Partition("us-east", false)

	// ExplainName of an Account reports its replicas, and Explain of an update reports that a later
	// update has replaced it.
	e, err = c.ExplainName(t.Context(), accounts, key("", acme))
	require.NoError(t, err)
	require.Equal(t, map[region.PeerName]string{
		"ap-south": "primary by I3", "eu-west": "replica by Activation", "us-east": "replica by Activation",
	}, judged(t, e))
	first, err := c.Update(t.Context(), newAccount(acme, "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	second, err := c.Update(t.Context(), newAccount(acme, "Tenant", "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	e, err = stranger.Explain(t.Context(), first.ID)
	require.NoError(t, err)
	require.Equal(t, fanout.Done, e.State)
	require.Contains(t, e.Text, "overtaken: the object is at revision 3 by operation "+second.ID)

	// ExplainName reports an object that a person applied as unclaimed, and a name that no object has
	// as absent.
	_, err = clusters(t, r, "ap-south", acme).Create(t.Context(), newServiceCluster(acme, "applied"), metav1.CreateOptions{})
	require.NoError(t, err)
	e, err = c.ExplainName(t.Context(), serviceClusters, key(acme, "applied"))
	require.NoError(t, err)
	require.Equal(t, "unclaimed by I9", judged(t, e)["ap-south"])
	e, err = c.ExplainName(t.Context(), serviceClusters, key(acme, "nothing"))
	require.NoError(t, err)
	require.Empty(t, e.State)
	require.Equal(t, "absent by I2", judged(t, e)["ap-south"])
	_, err = c.ExplainName(t.Context(), serviceClusters, key("", "nothing"))
	require.ErrorContains(t, err, "metadata.namespace")
}

func TestExplainWhatIsUnderWay(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Identity: "me/1"})
	acme := addAccount(t, c)

	reserved := reserve(t, r, acme, "reserved", "us-east", "stranger/1")
	e, err := c.Explain(t.Context(), reserved)
	require.NoError(t, err)
	require.Equal(t, fanout.Reserving, e.State)
	require.Equal(t, "stranger/1", e.Coordinator)
	require.Equal(t, map[region.PeerName]string{
		"ap-south": "reservation by Judging a secondary",
		"eu-west":  "reservation by Judging a secondary",
		"us-east":  "reservation by Rivals that are both alive",
	}, judged(t, e))

	_, err = c.Add(t.Context(), newServiceCluster(acme, "going"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	release := hold(t, clusters(t, r, "us-east", acme), "going")
	op := removeHeld(t, r, acme, "going", "me/1")
	e, err = coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Explain(t.Context(), op.ID)
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, e.State)
	require.Equal(t, "remove", e.Action)
	require.Equal(t, "me/1", e.Coordinator)
	require.Equal(t, "leaving by Remove", judged(t, e)["us-east"])
	require.Equal(t, "leaving by Remove", judged(t, e)["eu-west"])

	left, err := c.Add(t.Context(), newServiceCluster(acme, "left"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	r.Partition("ap-south", true)
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "left"), fanout.RemoveOptions{Unreachable: fanout.Forward})
	require.NoError(t, err)
	r.Partition("ap-south", false)
	e, err = coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Explain(t.Context(), left.ID)
	require.NoError(t, err)
	require.Equal(t, fanout.Ended, e.State)
	require.Equal(t, "leftover by Judging a secondary", judged(t, e)["ap-south"])

	traces, err := c.Traces(t.Context())
	require.NoError(t, err)
	var lines []string
	for _, tr := range traces {
		lines = append(lines, strings.Join([]string{tr.Key.Name, tr.Action, string(tr.State), tr.Coordinator, string(tr.Primary)}, " "))
		require.False(t, tr.Since.IsZero())
		require.NotEmpty(t, tr.String())
	}
	require.Equal(t, []string{
		"going remove Committed me/1 us-east", "left add Ended me/1 us-east", "reserved add Reserving stranger/1 us-east",
	}, lines)

	release()
	awaitClean(t, c)
	traces, err = c.Traces(t.Context())
	require.NoError(t, err)
	require.Empty(t, traces)
}

// Explain of an operation that the log has open reports the state in the peers and the state in the
// log. Resume aborts the operation, because it is an add that was not committed.
func TestExplainAnOpenOperation(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	id, log := stop(t, r, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"}, "me/1", beforeCommit)
	c := coordinator(t, r, log, fanout.Options{})
	e, err := c.Explain(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, fanout.Reserving, e.State)
	require.Equal(t, "open: committing", e.Log)
	require.Contains(t, e.Next, "operation resume "+id)

	op, err := c.Resume(t.Context(), id)
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.Equal(t, fanout.Aborted, op.State)
	requireClean(t, c)
}

func TestAbort(t *testing.T) {
	r := newRing(t)
	plain := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, plain)
	// The lease does not run out in this test, so a call that waits for it would hang.
	patient := fanout.Options{Identity: "me/1", LeaseTimeout: time.Hour}

	t.Run("own, in the log", func(t *testing.T) {
		id, log := stop(t, r, newServiceCluster(acme, "mine"), fanout.AddOptions{Target: "us-east"}, "me/1", beforeCommit)
		c := coordinator(t, r, log, patient)
		op, err := c.Abort(t.Context(), id, fanout.AbortOptions{})
		require.NoError(t, err)
		require.Equal(t, fanout.Aborted, op.State)
		requireClean(t, plain)
		op, err = c.Abort(t.Context(), id, fanout.AbortOptions{})
		require.NoError(t, err, "it is idempotent")
		require.Equal(t, fanout.Aborted, op.State)
	})
	t.Run("own, of a lost log", func(t *testing.T) {
		id := reserve(t, r, acme, "lost", "us-east", "me/1")
		op, err := coordinator(t, r, waltest.NewMemory(), patient).Abort(t.Context(), id, fanout.AbortOptions{})
		require.NoError(t, err)
		require.Equal(t, fanout.Aborted, op.State)
		requireClean(t, plain)
	})
	t.Run("another's", func(t *testing.T) {
		id := reserve(t, r, acme, "theirs", "us-east", "stranger/1")
		c := coordinator(t, r, waltest.NewMemory(), patient)
		_, err := c.Abort(t.Context(), id, fanout.AbortOptions{})
		foreign, ok := errors.AsType[*fanout.ForeignError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "stranger/1", foreign.Coordinator)
		require.EqualValues(t, "us-east", foreign.Holder)
		require.WithinDuration(t, time.Now(), foreign.Since, time.Minute)
		op, err := c.Abort(t.Context(), id, fanout.AbortOptions{Others: true})
		require.NoError(t, err)
		require.Equal(t, fanout.Aborted, op.State)
		requireClean(t, plain)
	})
	t.Run("committed", func(t *testing.T) {
		op, err := plain.Add(t.Context(), newServiceCluster(acme, "committed"), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		_, err = coordinator(t, r, waltest.NewMemory(), patient).Abort(t.Context(), op.ID, fanout.AbortOptions{Others: true})
		require.ErrorIs(t, err, fanout.ErrCommitted)
		require.ErrorContains(t, err, "committed in us-east")
		requireClean(t, plain)
	})
	t.Run("unknown", func(t *testing.T) {
		_, err := plain.Abort(t.Context(), "unheard-of", fanout.AbortOptions{})
		require.ErrorIs(t, err, fanout.ErrUnknownOperation)
	})
	t.Run("its primary's peer is silent", func(t *testing.T) {
		id := reserve(t, r, acme, "silent", "us-east", "stranger/1")
		r.Partition("us-east", true)
		_, err := plain.Abort(t.Context(), id, fanout.AbortOptions{Others: true})
		doubt, ok := errors.AsType[*fanout.InDoubtError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, []region.PeerName{"us-east"}, doubt.Peers)
		_, err = plain.Resume(t.Context(), id)
		_, ok = errors.AsType[*fanout.InDoubtError](err)
		require.True(t, ok, "%v", err)
		r.Partition("us-east", false)
		op, err := plain.Resume(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, fanout.Aborted, op.State, "its lease has run out")
		requireClean(t, plain)
	})
	t.Run("resumed, committed", func(t *testing.T) {
		op, err := plain.Add(t.Context(), newServiceCluster(acme, "unguarded"), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		require.NoError(t, clusters(t, r, "eu-west", acme).Delete(t.Context(), "unguarded", metav1.DeleteOptions{}))
		op, err = coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Resume(t.Context(), op.ID)
		require.NoError(t, err)
		require.Equal(t, fanout.Done, op.State)
		requireClean(t, plain)
	})
}
