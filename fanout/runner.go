// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// lease is the number of quanta (see executor.quantum) in a lease.
const lease = 60

// runner runs one machine: it executes the machine's commands against peers and log, and
// passes the replies to the machine. It decides nothing.
type runner struct {
	executor *executor
	kind     Kind
	key      types.NamespacedName
	machine  *protocol.Machine
	journal  journal
	entry    *logEntry // empty for a sweep

	requestToken string // token of the request's content

	census *census // of a sweep: all of its objects share it

	rehearsal *rehearsal // of a plan, which writes nothing; nil otherwise

	memory   *memory
	troubles troubles
}

func (r *runner) caller() caller         { return caller{r} }
func (r *runner) conclusion() conclusion { return conclusion{r} }
func (r *runner) planner() planner       { return planner{r} }

// run executes commands until the machine is over. When ctx ends, run expires the machine,
// which then has Options.Cleanup to read the outcome and to clean up.
func (r *runner) run(ctx context.Context) (protocol.Result, error) {
	defer r.entry.showLife(ctx)()
	d := r.driver()
	defer d.close()
	_, err := d.run(ctx, nil)
	r.report(ctx, r.machine.Result)
	return r.machine.Result, err
}

// report logs a conflict of two revisions after a restore: the operation succeeds, but one of the
// two contents is lost.
func (r *runner) report(ctx context.Context, result protocol.Result) {
	if m := result.Mend; m.Number > 0 {
		logging.From(ctx).Info("Two contents under one revision number were reconciled: a peer was restored from an older state",
			"kind", r.kind.Kind, "object", keyString(r.key), "peer", result.Primary.Peer, "revision", m.Number,
			"kept", m.Kept.Operation, "dropped", m.Dropped.Operation)
	}
}

func (r *runner) driver() *driver {
	return newDriver(timed{r.machine, &r.troubles}, r.executor.opts.Cleanup, func(command protocol.Command) func(context.Context) protocol.Reply {
		write := r.prepare(command)
		return func(ctx context.Context) protocol.Reply { return r.execute(ctx, command, write) }
	})
}

// logWrite is what a command writes to the log, copied before the machine continues.
type logWrite struct {
	entry   wal.Entry
	outcome []byte
	result  outcome // of the commands Withdraw and Forget
	skip    bool
	err     error
}

// prepare returns the write of a log command, with a copy of the machine's data. For other
// commands it returns an empty write.
func (r *runner) prepare(command protocol.Command) logWrite {
	switch command.Verb {
	case protocol.Withdraw:
		return logWrite{result: r.conclusion().result(r.machine.Result)}
	case protocol.Begin, protocol.Advance:
		if !r.journal.Origin.Known() {
			// The ring was unknown at the submission: no peer had answered in time. The operation
			// acts only in peers that have answered since.
			r.journal.Origin = r.executor.clusters.identities.origin()
		}
		j := r.journal
		j.Operation, j.Record = r.machine.Op, r.machine.Record
		e := r.entry.present()
		e.State = string(r.machine.Phase)
		if ending := r.machine.Result.Ending; ending != protocol.Running {
			e.State = string(ending)
		} else if r.machine.Record.Committing {
			e.State = "committing"
		}
		data, err := j.encode()
		e.Data = data
		return logWrite{entry: e, err: err}
	case protocol.Forget:
		// After an attempt gave way, the next one continues under the same entry: do not end it.
		return logWrite{
			entry:   r.entry.present(),
			outcome: r.conclusion().outcome(),
			result:  r.conclusion().result(r.machine.Result),
			skip:    r.machine.Result.Reason == protocol.GaveWay,
		}
	default:
		return logWrite{}
	}
}

// failure returns why the last calls to peer failed; nil if they did not.
func (r *runner) failure(peer region.PeerName) error { return r.troubles.failure(peer) }

// timed is a machine that records, when it expires, which calls it waits for.
type timed struct {
	machine
	troubles *troubles
}

func (w timed) Expire() []protocol.Command {
	w.troubles.expire()
	return w.machine.Expire()
}
