// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// troubles records the failed calls to each peer during one run of a machine: the call, the cause,
// and the start of the first failed call. It is safe for concurrent use.
type troubles struct {
	mu    sync.Mutex
	peers map[region.PeerName]*trouble
	calls map[*call]struct{} // under way
	// State at the end of the caller's deadline.
	expired     time.Time
	late        []trouble
	outstanding []*call
}

// trouble describes the consecutive failed calls to one peer.
type trouble struct {
	call
	attempts int
	since    time.Time // start of the first failed call
	answered bool      // the peer has answered a read after one of the failed writes
}

// call is one command to a peer.
type call struct {
	peer  region.PeerName
	op    string
	write bool
	began time.Time
	// The result.
	err    error
	silent bool // no answer, or an error that a retry may avoid
	cut    bool // the operation's deadline ended it
}

func (t *troubles) begin(peer region.PeerName, op string, write bool) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &call{peer: peer, op: op, write: write, began: time.Now()}
	if t.calls == nil {
		t.calls = map[*call]struct{}{}
	}
	t.calls[c] = struct{}{}
	return c
}

// end records the result of a call within ctx, the operation's context. settled means that the
// call found the effect of an earlier write whose answer was lost.
func (t *troubles) end(ctx context.Context, c *call, err error, silent, settled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls, c)
	c.err, c.silent, c.cut = err, silent, err != nil && ctx.Err() != nil
	was := t.peers[c.peer]
	switch {
	case err != nil:
		t.fail(*c)
	case was == nil, c.peer == "": // an error of the log stays: it ends the operation
	case c.write || settled || !was.write:
		delete(t.peers, c.peer)
	default:
		was.answered = true
	}
}

func (t *troubles) fail(c call) {
	if t.peers == nil {
		t.peers = map[region.PeerName]*trouble{}
	}
	was := t.peers[c.peer]
	if was == nil {
		t.peers[c.peer] = &trouble{call: c, attempts: 1, since: c.began}
		return
	}
	gaveUp := errors.Is(c.err, context.Canceled) || errors.Is(c.err, context.DeadlineExceeded)
	if c.cut || gaveUp && region.CauseOf(c.err) == region.CauseUnknown {
		return // the deadline passed, or the call was not sent: the earlier error is more informative
	}
	was.call, was.answered = c, was.answered && c.write
	was.attempts++
}

// failure returns why the last calls to peer failed; nil if they did not.
func (t *troubles) failure(peer region.PeerName) error { return t.explain(peer, nil) }

// explain returns why the last calls to peer failed, or known if they did not fail. It also
// returns known, unless known is nil, if the operation's deadline cut the last call off: then
// known explains more.
func (t *troubles) explain(peer region.PeerName, known error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.peers[peer]
	if was == nil || was.cut && known != nil {
		return known
	}
	return was.failure()
}

func (t *trouble) failure() error {
	where, ok := t.err.(*region.Error) //nolint:errorlint // the outermost says where it failed
	if !ok {
		return t.err
	}
	diagnosis, ok := where.Err.(*region.Diagnosis) //nolint:errorlint // the same
	if !ok {
		return t.err
	}
	found := *diagnosis
	if found.Cause == region.CauseTimeout && t.write && t.answered {
		found.Cause = region.CauseWriteTimeout
		found.Remedy = found.Cause.Remedy()
	}
	found.Attempts, found.Since = t.attempts, t.since
	return &region.Error{Peer: where.Peer, Region: where.Region, Op: where.Op, Err: &found}
}

// withOthers returns failed, the failure of peer, with the failures of all other peers that did not answer or rejected a
// request: which of them failed first depends on the attempt.
func (t *troubles) withOthers(peer region.PeerName, failed error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[region.PeerName]error{peer: failed}
	for _, was := range t.peers {
		if was.peer != "" && was.peer != peer && (was.silent || region.CauseOf(was.err) != region.CauseUnknown || rejection(was.err) != "") {
			found[was.peer] = was.failure()
		}
	}
	if peer == "" || len(found) == 1 {
		return failed
	}
	var all severalPeers
	for _, at := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[at])
	}
	return all
}

// severalPeers are the errors of several peers, sorted by peer.
type severalPeers []error

func (e severalPeers) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (e severalPeers) Unwrap() []error { return e }

// expire records, at the caller's deadline, the calls under way and the peers that did not answer
// their last calls.
func (t *troubles) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expired = time.Now()
	for _, was := range t.peers {
		if was.silent {
			t.late = append(t.late, *was)
		}
	}
	for c := range t.calls {
		t.outstanding = append(t.outstanding, c)
	}
}

// brief is how long a normal call may take. awaited does not report a call that began less than
// brief before the deadline, if there is another cause of the wait.
const brief = time.Second

// awaited returns an error that names the peers for which the operation waited at the caller's
// deadline, and why; nil if there were none.
func (t *troubles) awaited() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[region.PeerName]error{}
	for _, was := range t.late {
		found[was.peer] = was.failure()
	}
	slow := slices.ContainsFunc(t.outstanding, func(c *call) bool { return t.expired.Sub(c.began) >= brief })
	for _, c := range t.outstanding {
		if c.err == nil || found[c.peer] != nil || (slow || len(t.late) > 0) && t.expired.Sub(c.began) < brief {
			continue
		}
		err := c.err
		if region.CauseOf(err) == region.CauseUnknown {
			err = &region.Error{Peer: c.peer, Op: c.op, Err: fmt.Errorf("no answer since %s", c.began.UTC().Format(time.RFC3339))}
		}
		found[c.peer] = err
	}
	var outcomes []region.Outcome[struct{}]
	for peer, err := range found {
		outcomes = append(outcomes, region.Outcome[struct{}]{Peer: peer, Err: err})
	}
	if len(outcomes) == 1 {
		return outcomes[0].Err
	}
	return region.ResultsOf("answers", outcomes...).Err()
}
