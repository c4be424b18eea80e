// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// Plan is the predicted result of an Add, for the state of the peers when they were asked. That
// state may have changed when Add is called.
type Plan struct {
	// State is Done if the object would be committed, else Aborted.
	State State
	// Primary is the peer of the primary after the Add, or of the existing primary.
	Primary region.PeerName
	// AlreadyDone is set if an earlier operation had the same effect, so that Add would change
	// nothing.
	AlreadyDone bool
	// Latency predicts the duration of Add; zero if Add would be aborted or change nothing. It sums
	// the measured round trips that the protocol makes one after another, and the log's writes, each
	// as long as the Coordinator's last one. It does not include the kind's hooks.
	Latency time.Duration
	// Peers are the states of the peers after the Add. Err is why a peer would reject its write, or
	// does not answer, and Elapsed is the measured round trip.
	Peers region.Results[PeerState]
	// Leftovers are, by peer, the uncommitted and abandoned operations whose reservations Add would
	// delete first.
	Leftovers map[region.PeerName]string
}

// Plan predicts the result of Add and writes nothing. It sends each peer the create of Add as a
// dry run, which the peer's API server checks fully (rights, admission, validation, quota). It
// judges the name's holders, the members and the namespace's owner as Add does. It does not
// check writes after the creates, such as the commit.
//
// The error is nil if Add would be committed, and otherwise the error that Add would return: a
// *HeldError, or one that wraps ErrAborted. In both cases Plan returns a Plan with each peer's own
// answer, unless the request is invalid. If the log has an open operation under
// opts.IdempotencyKey, the error is an *InDoubtError, without a Plan. If a live operation has
// reserved the name, the error is a *HeldError with stage Reserved: Add would wait for that
// operation. Plan blocks. It sends a few requests to a peer that does not answer, whatever
// opts.Unreachable is.
func (c *Coordinator) Plan(ctx context.Context, obj Object, opts AddOptions) (*Plan, error) {
	kind, u, err := c.kinds.object(obj)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	peers, err := c.clusters.peers(ctx)
	if err != nil {
		return nil, err
	}
	silent, err := c.clusters.distinct(ctx)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("plan %s: %w", operationName(protocol.Add, kind, objectKey(u)), cmp.Or(silent, context.Cause(ctx)))
	}
	req := request{
		action:         protocol.Add,
		kind:           kind,
		key:            objectKey(u),
		obj:            u,
		target:         opts.Target,
		idempotencyKey: opts.IdempotencyKey,
		fieldManager:   opts.FieldManager,
	}
	op, content, err := c.submitter.operation(req, peers, time.Now(), newOperationID(time.Now()))
	if err != nil {
		return nil, err
	}
	if plan, err := c.submitter.planned(ctx, req, op); plan != nil || err != nil {
		return plan, err
	}
	// The lease is the shortest one, a quantum (see executor.quantum), and the start is in the
	// future: every rival is older, and the plan waits for none.
	op.Lease = 1
	op.Start = time.Now().AddDate(100, 0, 0).UnixMicro()
	r := c.executor.runner(kind, req.key, protocol.New(op), journal{Operation: op, Content: content})
	r.rehearsal = &rehearsal{trips: map[region.PeerName]time.Duration{}, leftovers: map[region.PeerName]string{}}
	result, err := r.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", operationName(op.Action, kind, req.key), err)
	}
	r.planner().rehearseRest(ctx)
	return r.planner().plan(ctx, result)
}

// planned returns the Plan for an idempotency key whose result the log has, else nil.
func (b *submitter) planned(ctx context.Context, req request, op protocol.Operation) (*Plan, error) {
	if req.idempotencyKey == "" {
		return nil, nil
	}
	b.clusters.acquaint(ctx)
	request := fingerprint(req, op)
	for n := 0; ; n++ {
		l, err := b.link(ctx, req, request, n)
		if err != nil {
			return nil, err
		}
		switch step := l.step(); step {
		case keyFree:
			return nil, nil
		case keyAnswer:
			return &Plan{State: Done, Primary: l.outcome.Primary, AlreadyDone: true, Peers: l.outcome.operation(l.entry.ID, req.kind).Peers}, nil
		case keyNext:
		case keySettle:
			return nil, &InDoubtError{
				Operation: l.entry.ID,
				Settles:   "Add under the same idempotency key settles it and gives its answer",
				Err:       errors.New("it is open"),
			}
		default:
			return nil, l.refusal(step, req)
		}
	}
}

// rehearsal records the results of a runner that writes nothing.
type rehearsal struct {
	mu        sync.Mutex
	trips     map[region.PeerName]time.Duration // round trips of the creates
	leftovers map[region.PeerName]string        // operations whose reservations would be deleted
	primary   protocol.Object                   // as the dry run created it
}

// A planner rehearses an operation for a plan: its runner writes nothing.
type planner struct{ r *runner }

// dryRun returns the DryRun option of this runner's creates.
func (pl planner) dryRun() []string {
	if pl.r.rehearsal == nil {
		return nil
	}
	return []string{"All"}
}

// rehearse runs a command without its effect: a create as a dry run, and any other write as if
// it succeeded. rehearsed is false for a command that only reads.
func (pl planner) rehearse(ctx context.Context, attempt *region.Attempt, command protocol.Command) (reply protocol.Reply, rehearsed bool, err error) {
	done := protocol.Reply{Class: protocol.Applied, Code: protocol.OK, Object: command.Object}
	h := pl.r.rehearsal
	peer := region.PeerName(command.Peer)
	switch command.Verb {
	case protocol.Begin, protocol.Advance, protocol.Forget, protocol.Activate, protocol.Release, protocol.Put, protocol.Withdraw:
		return done, true, nil
	case protocol.Delete:
		if obj, view, ok := pl.r.memory.recall(command.UID, command.RV); ok && obj != nil && view.Claim.Operation != pl.r.machine.Op.ID {
			h.mu.Lock()
			h.leftovers[peer] = view.Claim.Operation
			h.mu.Unlock()
		}
		return done, true, nil
	case protocol.Create:
		reply, err := pl.rehearseCreate(ctx, attempt, command)
		return reply, true, err
	default:
		return protocol.Reply{}, false, nil
	}
}

func (pl planner) rehearseCreate(ctx context.Context, attempt *region.Attempt, command protocol.Command) (protocol.Reply, error) {
	peer := region.PeerName(command.Peer)
	conn, err := pl.r.executor.clusters.directory.Conn(peer)
	if err != nil {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.NoSuchPeer}, err
	}
	if err := pl.r.executor.clusters.trust(ctx, conn); err != nil {
		return untrusted(err), err
	}
	begun := time.Now()
	reply, err := pl.r.caller().write(ctx, attempt, conn, command)
	h := pl.r.rehearsal
	h.mu.Lock()
	defer h.mu.Unlock()
	if reply.Class == protocol.Applied || reply.Code == protocol.Exists {
		h.trips[peer] = time.Since(begun)
	}
	if h.leftovers[peer] != "" && reply.Code == protocol.Exists {
		// The leftover would be deleted first. An API server checks the name last, so it has
		// accepted the object in every other respect.
		reply.Class, reply.Code, reply.Object, err = protocol.Applied, protocol.OK, command.Object, nil
		reply.Object.UID = "planned"
	}
	if command.Object.Claim.Primary && reply.Class == protocol.Applied {
		h.primary = reply.Object
	}
	return reply, err
}

// rehearseRest sends the dry run to the peers that the machine did not reach because another peer
// had rejected its dry run: a Plan has the answers of all peers.
func (pl planner) rehearseRest(ctx context.Context) {
	op := pl.r.machine.Op
	primary := pl.r.rehearsal.primary
	if primary.UID == "" {
		primary.UID = "planned"
	}
	asked := maps.Clone(pl.r.rehearsal.trips)
	var wg sync.WaitGroup
	for _, p := range op.Peers {
		if _, ok := asked[region.PeerName(p)]; ok || p == op.Target || pl.r.failure(region.PeerName(p)) != nil {
			continue
		}
		o := protocol.SecondaryOf(op, p, protocol.Ref{Peer: op.Target, UID: primary.UID})
		wg.Go(func() { pl.r.execute(ctx, protocol.Command{Verb: protocol.Create, Peer: p, Object: o}, logWrite{}) })
	}
	wg.Wait()
}

// plan converts the result of the rehearsal into the caller's Plan and error.
func (pl planner) plan(ctx context.Context, result protocol.Result) (*Plan, error) {
	o := pl.r.conclusion().result(result)
	h := pl.r.rehearsal
	plan := &Plan{State: Aborted, Primary: o.Primary, AlreadyDone: o.AlreadyDone, Leftovers: h.leftovers}
	if o.committed() {
		plan.State = Done
	}
	err := pl.refusal(ctx, result)
	at := region.PeerName(result.Peer)
	if result.HolderAt != "" {
		at = region.PeerName(result.HolderAt)
	}
	var outcomes []region.Outcome[PeerState]
	for peer := range o.operation("", pl.r.kind).Peers.All() {
		peer.Err, peer.Elapsed = pl.refused(peer.Peer), h.trips[peer.Peer]
		if peer.Err == nil && err != nil && peer.Peer == at {
			peer.Err = err
		}
		outcomes = append(outcomes, peer)
	}
	plan.Peers = region.ResultsOf("plan", outcomes...)
	if plan.State == Done && !plan.AlreadyDone {
		plan.Latency = pl.latency()
	}
	return plan, err
}

// refused returns why peer would reject its write. It returns nil if only the name exists in peer,
// because the machine judges the object that has the name.
func (pl planner) refused(peer region.PeerName) error {
	if _, ok := pl.r.rehearsal.trips[peer]; ok {
		return nil
	}
	return pl.r.failure(peer)
}

// refusal returns the error that Add would return.
func (pl planner) refusal(ctx context.Context, result protocol.Result) error {
	switch result.Ending {
	case protocol.Done, protocol.AlreadyDone, protocol.Committed:
		return nil
	}
	switch result.Reason {
	case protocol.HeldByOther, protocol.GaveWay:
		return pl.r.conclusion().held(result)
	}
	return fmt.Errorf("%s would be %w: %w", operationName(pl.r.machine.Op.Action, pl.r.kind, pl.r.key), ErrAborted, pl.r.conclusion().cause(ctx, result))
}

// latency sums the round trips of the protocol: the primary; then in parallel the secondaries and
// the reads in the target; then the commit; then, if the kind exists everywhere, the activation. It
// adds two writes of the log.
func (pl planner) latency() time.Duration {
	var target, others time.Duration
	for peer, trip := range pl.r.rehearsal.trips {
		if string(peer) == pl.r.machine.Op.Target {
			target = trip
		} else {
			others = max(others, trip)
		}
	}
	sum := 2*target + max(target, others)
	if pl.r.kind.Mode == Everywhere {
		sum += others
	}
	return sum + 2*time.Duration(pl.r.executor.entries.logged.Load())
}
