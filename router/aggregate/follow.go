// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/internal/backoff"
)

// errRenewed ends a round of a cache's feed, because a watch needs a later state than the cache has.
var errRenewed = errors.New("a watch needs a later state")

// forCache returns a feed of the same source for a cache. It begins at the consumer's version, if there is one.
func (f *feed) forCache() *feed {
	return &feed{
		api: f.api, q: f.q, source: f.source, seed: f.seed, ledger: newLedger(), at: f.at, done: make(chan struct{}),
		encoder: f.api.eventEncoder(f.q, f.encoder.enc, f.seed),
	}
}

// shares reports whether the feed may follow a cache.
func (f *feed) shares() bool {
	o := &f.api.opts
	return f.renewals == nil && o.Sharing != nil && o.Identity != "" && f.encoder != nil && !f.encoder.enc.Form.table() && f.source.raw != nil && !f.fresh
}

// stamped returns the version that the consumer has, and the stamp of its state.
func (f *feed) stamped() (string, uint64) {
	switch {
	case f.at == "":
		return "", 0
	case f.unknown:
		return f.at, f.stamp
	default:
		return f.at, f.ledger.stamp()
	}
}

// share follows the cache of the source for as long as possible. It returns false if the feed must watch the region
// itself. It asks the region first, as the caller, so that the region decides whether the caller may read the objects.
func (f *feed) share(ctx context.Context) (bool, error) {
	if !f.shares() || f.at == "" && len(f.ledger.known) > 0 {
		return false, nil
	}
	c, leave := f.api.opts.Sharing.join(f)
	if c == nil {
		return false, nil
	}
	defer leave()
	now, err := c.asked.ask(ctx, f.now)
	if err != nil {
		return true, err
	}
	rv, stamp := f.stamped()
	e, ok := c.enter(ctx, rv, stamp, now, f.api.opts.Timeout)
	if !ok {
		return false, ctx.Err()
	}
	f.waits, f.kind = f.api.opts.Answer, e.kind
	f.unknown, f.at = true, "" // until all objects are delivered
	for _, o := range e.objects {
		if !f.send(ctx, news{kind: watch.Added, object: o, own: o.rv, stamp: o.print}) {
			return true, ctx.Err()
		}
	}
	f.cache, f.next, f.ledger = c, e.next, nil // the cache knows what the consumer has
	f.at, f.stamp = e.at, e.stamp
	f.took(ctx, StepShare, nil)
	f.send(ctx, news{at: e.at, stamp: e.stamp, state: OK, listed: e.kind})
	return true, f.pass(ctx)
}

// pass passes the messages of the cache on, until the cache does not have the next one.
func (f *feed) pass(ctx context.Context) error {
	for {
		messages, changed, ok := f.cache.after(f.next)
		switch {
		case !ok && f.at == "":
			return errLost
		case !ok:
			return nil
		}
		for _, n := range messages {
			if !f.send(ctx, n.forConsumer()) {
				return ctx.Err()
			}
			if f.next++; n.at != "" || n.object != nil {
				f.at, f.stamp = n.at, n.stamp
			}
		}
		if len(messages) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// forConsumer returns a message whose object the consumer may change.
func (n news) forConsumer() news {
	if n.object != nil && n.object.decoded != nil {
		o := *n.object
		o.decoded = o.decoded.DeepCopy()
		n.object = &o
	}
	return n
}

// settle makes the ledger the feed's memory of what the consumer has, once the feed has ended. If the cache knows more
// than the consumer, the feed stays unknown.
func (f *feed) settle() {
	if f.cache == nil {
		return
	}
	if l := f.cache.ledger(f.next); l != nil {
		f.ledger, f.unknown = l, false
	}
	f.cache = nil
}

// renewing ends the watch w of a cache's feed once the feed is behind. The func that it returns reports whether that was
// so.
func (f *feed) renewing(ctx context.Context, w events) func() bool {
	if f.renewals == nil {
		return func() bool { return false }
	}
	ctx, cancel := context.WithCancel(ctx)
	renewed := make(chan bool, 1)
	go func() {
		for backoff.Sleep(ctx, settling) {
			if f.behind() {
				w.stop()
				renewed <- true
				return
			}
			select {
			case <-f.renewals:
			case <-ctx.Done():
			}
		}
		renewed <- false
	}()
	return func() bool {
		cancel()
		return <-renewed
	}
}
