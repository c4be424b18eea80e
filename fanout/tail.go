// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"sync"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// tails counts the operations whose call has returned and whose work continues in the background.
type tails struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n becomes zero; nil while n is zero
}

func (t *tails) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n++; t.none == nil {
		t.none = make(chan struct{})
	}
}

func (t *tails) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 {
		close(t.none)
		t.none = nil
	}
}

// wait blocks until n is zero and returns nil, or returns the error of ctx.
func (t *tails) wait(ctx context.Context) error {
	t.mu.Lock()
	none := t.none
	t.mu.Unlock()
	if none == nil {
		return nil
	}
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Wait blocks until every Add of this Coordinator that has returned is durable or left to recovery,
// and returns nil. If ctx ends first, it returns the error of ctx. Call Wait before you close the
// log. If the background work of an Add was cut off, the next Recover continues it. Wait takes at
// most Options.CallTimeout plus Options.Cleanup for each Add.
func (c *Coordinator) Wait(ctx context.Context) error { return c.executor.tails.wait(ctx) }

// answer runs the machine until the result for the caller is certain. rest, unless nil, continues
// the machine in the background, to make the commit durable; the caller must call it once.
func (r *runner) answer(ctx context.Context, durable bool) (result protocol.Result, rest func(), err error) {
	promised := func() bool {
		_, ok := r.machine.Promise()
		return ok
	}
	if durable {
		promised = nil
	}
	stop := r.entry.showLife(ctx)
	d := r.driver()
	over, err := d.run(ctx, promised)
	if over || err != nil {
		d.close()
		stop()
		r.report(ctx, r.machine.Result)
		return r.machine.Result, nil, err
	}
	result, _ = r.machine.Promise()
	r.executor.tails.begin()
	id := r.entry.present().ID
	return result, func() {
		go func() {
			defer r.executor.tails.end()
			defer r.executor.entries.done(id)
			defer stop()
			defer d.close()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.executor.opts.CallTimeout)
			defer cancel()
			_, err := d.run(ctx, nil)
			result := r.machine.Result
			r.executor.opts.Observer.durable(ctx, EndEvent{
				Operation: id, Kind: r.kind.GroupKind(), Key: r.key, State: stateOf(result), Durable: result.Durable, Err: err,
			})
		}()
	}, nil
}
