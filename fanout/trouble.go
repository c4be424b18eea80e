// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// troubles are what keeps peers from doing their part in one run of a machine:
// which call, why, since when. Safe for concurrent use.
type troubles struct {
	mu    sync.Mutex
	peers map[region.PeerName]*trouble
	calls map[*call]struct{} // under way
	// As it was when the caller's time was over.
	expired     time.Time
	late        []trouble
	outstanding []*call
}

// trouble is that of one peer: the calls of it that failed in a row.
type trouble struct {
	call
	attempts int
	since    time.Time // of the first
	answered bool      // the peer answered a read since
}

// call is one command to a peer.
type call struct {
	peer  region.PeerName
	op    string
	write bool
	began time.Time
	// What came of it.
	err    error
	silent bool // it was not answered, or with an error that a later one may be free of
	cut    bool // the time of the operation ended it
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

// end notes what came of a call within ctx, which is the operation's. What settled it found the effect of an earlier
// write whose answer was lost.
func (t *troubles) end(ctx context.Context, c *call, err error, silent, settled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls, c)
	c.err, c.silent, c.cut = err, silent, err != nil && ctx.Err() != nil
	was := t.peers[c.peer]
	switch {
	case err != nil:
		t.fail(*c)
	case was == nil, c.peer == "": // what the log refused ends the operation
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
		return // the operation's time was over, or it never left: what is known says more about the peer
	}
	was.call, was.answered = c, was.answered && c.write
	was.attempts++
}

// failure is why the last calls of peer failed; nil if they did not.
func (t *troubles) failure(peer region.PeerName) error {
	_, err := t.last(peer)
	return err
}

// last is failure, and whether the end of the operation's time cut those calls off.
func (t *troubles) last(peer region.PeerName) (cut bool, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was := t.peers[peer]; was != nil {
		return was.cut, was.failure()
	}
	return false, nil
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

// expire keeps what is being waited for now, as the caller's time is over.
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

// brief is how long a call may take that nothing is wrong with: it is not what
// was waited for if something else is.
const brief = time.Second

// awaited names the peers that were waited for as the caller's time was over,
// and why; nil if there were none.
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
