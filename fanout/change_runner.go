// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// changeRunner runs one change of the membership, as a runner runs one operation on an object.
type changeRunner struct {
	changes *changes
	machine *protocol.Change
	entry   *logEntry // empty for a change of another coordinator
	subs    chan struct{}

	mu       sync.Mutex
	found    map[string]foundAt
	departed map[string]metav1.Time               // when each departed peer departed
	pending  map[string]map[region.PeerName]error // by the key of an object: why peers have not confirmed it
	troubles troubles
}

// foundAt is an object that a survey found.
type foundAt struct {
	kind Kind
	key  types.NamespacedName
	obj  *unstructured.Unstructured
}

func (r *changeRunner) run(ctx context.Context) error {
	defer r.entry.showLife(ctx)()
	return drive(ctx, timed{r.machine, &r.troubles}, r.changes.opts.Cleanup, func(command protocol.Command) func(context.Context) protocol.Reply {
		write := r.prepare(command)
		return func(ctx context.Context) protocol.Reply { return r.execute(ctx, command, write) }
	})
}

// prepare returns the write of a log command, with a copy of the machine's data. For other
// commands it returns an empty write.
func (r *changeRunner) prepare(command protocol.Command) logWrite {
	e := r.entry.present()
	switch command.Verb {
	case protocol.Begin, protocol.Advance:
		e.State = string(r.machine.Phase)
		j := journal{
			Group: peerSetKind.Group, Kind: peerSetKind.Kind, Name: r.machine.Op.Peer,
			Change: &changeJournal{Operation: r.machine.Op, Record: r.machine.Record},
			Origin: r.changes.clusters.identities.origin(),
		}
		data, err := json.Marshal(j)
		e.Data = data
		return logWrite{entry: e, err: err, skip: e.ID == ""}
	case protocol.Forget:
		return logWrite{entry: e, skip: e.ID == ""}
	default:
		return logWrite{}
	}
}

// execute runs one command and returns its reply.
func (r *changeRunner) execute(ctx context.Context, command protocol.Command, write logWrite) protocol.Reply {
	if command.Verb == protocol.Sleep {
		quantum := r.changes.executor.quantum()
		timer := time.NewTimer(quantum*3/4 + rand.N(quantum/2+1))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		return protocol.Reply{Class: protocol.Applied, Code: protocol.OK}
	}
	event := StepEvent{
		Operation: r.machine.Op.ID, Kind: peerSetKind, Key: types.NamespacedName{Name: r.machine.Op.Peer},
		Peer: region.PeerName(command.Peer), Verb: string(command.Verb),
	}
	observer := r.changes.opts.Observer
	observer.step(ctx, event)
	about := fmt.Sprintf("%s %s of %s", stepOf(command.Verb), r.machine.Op.Kind, r.machine.Op.Peer)
	call := r.troubles.begin(event.Peer, about, writes(command.Verb))
	var attempt region.Attempt
	reply, err := r.perform(ctx, &attempt, command, write)
	if event.Peer != "" { // empty for a command of the log
		err = explain(event.Peer, about, err)
	}
	r.troubles.end(ctx, call, err, reply.Code == protocol.Unavailable || reply.Code == protocol.NoSuchPeer, false)
	event.Done, event.Code, event.Err = true, string(reply.Code), err
	observer.step(ctx, event)
	return reply
}

// failure returns why the change cannot continue: the error of the last call to peer, or if that
// call did not fail, the reason why a peer has not confirmed an object.
func (r *changeRunner) failure(peer region.PeerName) error {
	return r.troubles.explain(peer, r.unconfirmed(peer))
}

// unconfirmed returns why peers have not confirmed an object: the reason of peer if peer has one,
// else the reason of another peer, or nil if all objects are confirmed.
func (r *changeRunner) unconfirmed(peer region.PeerName) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var other error
	for _, key := range slices.Sorted(maps.Keys(r.pending)) {
		if at := r.pending[key][peer]; at != nil {
			return at
		}
		for _, p := range slices.Sorted(maps.Keys(r.pending[key])) {
			other = cmp.Or(other, r.pending[key][p])
		}
	}
	return other
}

func (r *changeRunner) recall(key string) (foundAt, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.found[key]
	return f, ok
}

func (r *changeRunner) perform(ctx context.Context, attempt *region.Attempt, command protocol.Command, write logWrite) (protocol.Reply, error) {
	ok := protocol.Reply{Class: protocol.Applied, Code: protocol.OK}
	switch command.Verb {
	case protocol.Begin, protocol.Advance, protocol.Forget:
		return r.writeLog(ctx, command.Verb, write)
	case protocol.Finish:
		peers, err := r.changes.clusters.peers(ctx)
		if err == nil {
			err = r.changes.finish(ctx, *command.Other, peers)
		}
		return ok, err
	case protocol.Survey:
		found, err := r.survey(ctx, region.PeerName(command.Peer))
		if err != nil {
			code := classifyRead(err)
			if code == protocol.OK || code == protocol.NotFound {
				code = protocol.Unavailable
			}
			return protocol.Reply{Class: protocol.NotApplied, Code: code}, err
		}
		ok.Found = found
		return ok, nil
	case protocol.Sub:
		result, err := r.sub(ctx, command)
		if err != nil {
			return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Unavailable}, err
		}
		ok.Result = result
		return ok, nil
	}
	if op := r.machine.Op; op.Kind == protocol.Return && command.Peer == op.Peer {
		ctx = returning(ctx, region.PeerName(op.Peer))
	}
	ctx, cancel := context.WithTimeout(ctx, r.changes.opts.CallTimeout)
	defer cancel()
	conn, err := r.changes.clusters.directory.Conn(region.PeerName(command.Peer))
	if err != nil {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.NoSuchPeer}, err
	}
	switch command.Verb {
	case protocol.ReadPeerSet:
		set, err := r.changes.clusters.readSet(ctx, conn)
		reply := protocol.Reply{Class: protocol.Applied, Code: classifyRead(err)}
		if err == nil {
			r.noted(set.PeerSet)
			reply.PeerSet = set.view
		}
		if reply.Code == protocol.NotFound {
			err = nil
		}
		return reply, err
	case protocol.PutPeerSet:
		if err := r.changes.clusters.trust(ctx, conn); err != nil {
			return untrusted(err), err
		}
		return r.putPeerSet(region.WithAttempt(ctx, attempt), attempt, conn, command)
	default:
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Denied}, fmt.Errorf("unknown command %q", command.Verb)
	}
}

func (r *changeRunner) writeLog(ctx context.Context, verb protocol.Verb, write logWrite) (protocol.Reply, error) {
	log, err := r.changes.entries.log, write.err
	ctx = context.WithoutCancel(ctx)
	r.entry.turn <- struct{}{}
	defer func() { <-r.entry.turn }()
	if err == nil && !write.skip {
		entry := write.entry
		entry.Version = r.entry.present().Version
		switch {
		case verb == protocol.Forget:
			err = log.End(ctx, entry, r.outcome())
		case entry.Version == "":
			entry, err = log.Begin(ctx, entry)
		default:
			entry, err = r.entry.advance(ctx, entry)
		}
		if err == nil && verb != protocol.Forget {
			r.entry.took(entry)
		}
	}
	return logged(err)
}

// noted stores the departure times that a PeerSet lists, for later writes of PeerSets.
func (r *changeRunner) noted(set *v1alpha1.PeerSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range set.Spec.Departed {
		r.departed[d.Peer] = d.At
	}
}

// putPeerSet creates a PeerSet, or updates it if it still has the resourceVersion that was read.
func (r *changeRunner) putPeerSet(ctx context.Context, attempt *region.Attempt, conn *region.Conn, command protocol.Command) (protocol.Reply, error) {
	r.mu.Lock()
	departed := maps.Clone(r.departed)
	r.mu.Unlock()
	set := peerSet(*command.Set, departed, metav1.NewTime(time.Now().Truncate(time.Second)))
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Denied}, err
	}
	var got *unstructured.Unstructured
	client := conn.Dynamic().Resource(peerSets)
	if command.RV == "" {
		got, err = client.Create(ctx, &unstructured.Unstructured{Object: raw}, metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		got, err = client.Update(ctx, &unstructured.Unstructured{Object: raw}, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	class, code := classify(attempt, err)
	reply := protocol.Reply{Class: class, Code: code}
	if err != nil {
		return reply, err
	}
	var now v1alpha1.PeerSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, &now); err != nil {
		return protocol.Reply{Class: protocol.Unknown, Code: protocol.Unavailable}, err
	}
	r.noted(&now)
	reply.PeerSet = viewPeerSet(&now)
	return reply, nil
}

// survey lists the objects in peer. It skips objects without a claim if the kind keeps its state
// in an annotation instead of a field of spec.
func (r *changeRunner) survey(ctx context.Context, peer region.PeerName) ([]protocol.Found, error) {
	var found []protocol.Found
	for _, kind := range r.changes.opts.Kinds {
		items, _, err := r.changes.surveyor.listPeer(ctx, kind, peer)
		if err != nil {
			return nil, err
		}
		for i := range items {
			view, _, err := kind.view(&items[i])
			if err != nil {
				return nil, err
			}
			if !view.Claimed && kind.Claim.annotation != "" {
				continue
			}
			key := kind.GroupKind().String() + " " + keyString(objectKey(&items[i]))
			r.mu.Lock()
			r.found[key] = foundAt{kind: kind, key: objectKey(&items[i]), obj: &items[i]}
			r.mu.Unlock()
			found = append(found, protocol.Found{Key: key, Mode: protocol.Mode(kind.Mode), Object: view})
		}
	}
	return found, nil
}

// sub runs an operation on one object that the survey found, and returns its result.
func (r *changeRunner) sub(ctx context.Context, command protocol.Command) (protocol.Result, error) {
	select {
	case r.subs <- struct{}{}:
		defer func() { <-r.subs }()
	case <-ctx.Done():
		return protocol.Result{}, ctx.Err()
	}
	at, ok := r.recall(command.Key)
	if !ok {
		return protocol.Result{}, errors.New(strconv.Quote(command.Key) + " was never found")
	}
	op := *command.Sub
	op.Peers = r.machine.Op.Peers
	op.Inert, op.Holds = at.kind.Inert != nil, len(at.kind.Holds) > 0
	op.Limit = r.changes.opts.RemovalCap.limit()
	op.Lease = lease
	s := r.changes.executor.runner(at.kind, at.key, protocol.New(op), journal{Operation: op})
	if _, err := s.memory.remember(at.obj); err != nil {
		return protocol.Result{}, err
	}
	result, err := s.run(ctx)
	pending := map[region.PeerName]error{}
	for _, peer := range result.Pending {
		if why := s.failure(region.PeerName(peer)); why != nil {
			pending[region.PeerName(peer)] = why
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil || len(r.pending[command.Key]) == 0 { // a run that was cut off must not replace the cause that an earlier run found
		r.pending[command.Key] = pending
	}
	return result, err
}
