// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// TestExamineFindsWhatASweepMends puts two objects of one name into two members. It takes every
// pair of the objects that variants returns, except the pairs that are impossible. It repairs the
// findings of the examination until none changes anything, and then sweeps each object. These
// sweeps must change nothing: the examination finds everything that a sweep repairs.
func TestExamineFindsWhatASweepMends(t *testing.T) {
	for _, mode := range []protocol.Mode{protocol.Once, protocol.Everywhere} {
		pairs, found := 0, 0
		for _, a := range variants(mode, "a", "b") {
			for _, b := range variants(mode, "b", "a") {
				if impossible(mode, a, b) || impossible(mode, b, a) {
					continue
				}
				start := twoPeers{mode: mode, objects: map[string]*protocol.Object{"a": a, "b": b}}
				mended := start.clone()
				for round := 0; ; round++ {
					require.Less(t, round, 20, "mending %s finds no end: %s", start, mended)
					before := mended.String()
					for _, f := range mended.survey().examine() {
						if f.mend.obj != nil {
							found++
							mended.sweep(t, f.mendAt, f.mend.view)
						}
					}
					if mended.String() == before {
						break
					}
				}
				swept := mended.clone()
				for _, peer := range []string{"a", "b"} {
					if o := swept.objects[peer]; o != nil {
						swept.sweep(t, peer, *o)
					}
				}
				require.Equal(t, mended.String(), swept.String(), "from %s", start)
				pairs++
			}
		}
		t.Logf("mode %v: %d pairs, %d findings mended", mode, pairs, found)
	}
}

// impossible reports whether the secondary x names y, and y is no primary. That cannot happen,
// because a claim never changes.
func impossible(mode protocol.Mode, x, y *protocol.Object) bool {
	return x != nil && y != nil && x.Claimed && !x.Primary(mode) && x.Of(mode).UID == y.UID && !y.Primary(mode)
}

// variants returns the objects that peer may hold: no object, an object without a claim, and
// objects whose claim names operation o or a rival.
func variants(mode protocol.Mode, peer, other string) []*protocol.Object {
	base := protocol.Object{UID: "u-" + peer, RV: "1", Claimed: true, Payload: "p", Digest: "dp"}
	base.Claim = protocol.Claim{Operation: "o", Peer: peer, Target: peer, Digest: "dp"}
	with := func(o protocol.Object, edits ...func(*protocol.Object)) *protocol.Object {
		for _, edit := range edits {
			edit(&o)
		}
		return &o
	}
	going := func(o *protocol.Object) { o.Terminating = true }
	stage := func(s protocol.Stage) func(*protocol.Object) {
		return func(o *protocol.Object) {
			o.Stage = s
			o.Finalizer = o.Claim.Primary && s != protocol.Reserved
			if s == protocol.Removing {
				o.Removal = "r"
			}
		}
	}
	primary := func(o *protocol.Object) { o.Claim.Primary = true }
	of := func(uid string) func(*protocol.Object) {
		return func(o *protocol.Object) { o.Claim.Target, o.Claim.Of = other, protocol.Ref{Peer: other, UID: uid} }
	}
	alien := func(o *protocol.Object) { o.Claim.Operation = "w" }
	named, gone := of("u-"+other), of("u-gone")
	all := []*protocol.Object{
		nil,
		{UID: "p-" + peer, RV: "1", Payload: "p", Digest: "dp"},
		with(base, primary, stage(protocol.Reserved)),
		with(base, named, stage(protocol.Reserved)),
		with(base, named, stage(protocol.Reserved), alien),
		with(base, gone, stage(protocol.Reserved)),
	}
	if mode == protocol.Once {
		empty := func(o *protocol.Object) { o.Payload, o.Digest = "", "" }
		bound := func(o *protocol.Object) { o.Bound = o.Claim.Of }
		released := func(o *protocol.Object) { o.Released = true }
		return append(all,
			with(base, primary, stage(protocol.Configured)),
			with(base, primary, stage(protocol.Configured), going),
			with(base, primary, stage(protocol.Removing)),
			with(base, primary, stage(protocol.Removing), going),
			with(base, named, stage(protocol.Reserved), empty),
			with(base, named, stage(protocol.Reserved), empty, bound),
			with(base, named, stage(protocol.Reserved), bound),
			with(base, gone, stage(protocol.Reserved), empty, bound),
			with(base, gone, stage(protocol.Reserved), empty, bound, released),
		)
	}
	revision := func(number int64, operation string) func(*protocol.Object) {
		return func(o *protocol.Object) {
			o.Revision = protocol.Revision{Number: number, Operation: operation, Digest: "dp"}
			if o.Claim.Primary {
				o.History = []protocol.Revision{{Number: number, Operation: operation}}
			}
		}
	}
	first, second, forked := revision(1, "o"), revision(2, "x"), revision(2, "y")
	edited := func(o *protocol.Object) { o.Payload, o.Digest = "q", "dq" }
	valve := func(o *protocol.Object) { o.Valve = true }
	for _, o := range all[2:] {
		first(o)
	}
	for _, rev := range []func(*protocol.Object){first, second, forked} {
		all = append(all,
			with(base, primary, stage(protocol.Active), rev),
			with(base, named, stage(protocol.Active), rev),
			with(base, gone, stage(protocol.Active), rev),
		)
	}
	return append(all,
		with(base, primary, stage(protocol.Active), first, edited),
		with(base, primary, stage(protocol.Active), first, valve, going),
		with(base, primary, stage(protocol.Active), first, going),
		with(base, primary, stage(protocol.Removing), first),
		with(base, primary, stage(protocol.Removing), first, going),
		with(base, named, stage(protocol.Active), first, alien),
		with(base, gone, stage(protocol.Active), first, func(o *protocol.Object) { o.Released = true }),
	)
}

// twoPeers are the members a and b, with their objects of one name.
type twoPeers struct {
	mode    protocol.Mode
	objects map[string]*protocol.Object
	writes  int
}

func (p twoPeers) clone() twoPeers {
	return twoPeers{mode: p.mode, objects: map[string]*protocol.Object{"a": p.objects["a"], "b": p.objects["b"]}}
}

func (p twoPeers) String() string {
	var out []string
	for _, peer := range []string{"a", "b"} {
		o := p.objects[peer]
		switch {
		case o == nil:
			out = append(out, peer+": -")
		default:
			shown := *o
			shown.RV = ""
			out = append(out, fmt.Sprintf("%s: %+v", peer, shown))
		}
	}
	return strings.Join(out, "\n")
}

func (p twoPeers) set(peer string) protocol.PeerSet {
	set := protocol.PeerSet{UID: "s-" + peer, RV: "1", Ring: "ring"}
	for _, name := range []string{"a", "b"} {
		m := protocol.Member{Peer: name, UID: "c-" + name, State: "Active"}
		if set.Members = append(set.Members, m); name == peer {
			set.Self = m
		}
	}
	return set
}

var someKey = types.NamespacedName{Name: "some"}

func (p twoPeers) survey() survey {
	found := map[types.NamespacedName]map[string]met{someKey: {}}
	for peer, o := range p.objects {
		if o == nil {
			continue
		}
		obj := &unstructured.Unstructured{}
		obj.SetUID(types.UID(o.UID))
		if o.Terminating {
			obj.SetDeletionTimestamp(&metav1.Time{})
		}
		found[someKey][peer] = met{obj: obj, view: *o}
	}
	return survey{
		kind:  Kind{Kind: "Thing", Mode: Mode(p.mode)},
		peers: []string{"a", "b"}, early: found, late: found,
		sets: map[string]protocol.PeerSet{"a": p.set("a"), "b": p.set("b")},
	}
}

// sweep runs a machine that sweeps object o in peer.
func (p *twoPeers) sweep(t *testing.T, peer string, o protocol.Object) {
	t.Helper()
	m := protocol.New(protocol.Operation{
		ID: o.Claim.Operation, Action: protocol.Sweep, Mode: p.mode, Coordinator: "c", Peers: []string{"a", "b"},
		Target: peer, Met: o, Lease: 1, Watch: true,
	})
	for cmds, n := m.Start(), 0; len(cmds) > 0; n++ {
		require.Less(t, n, 1000, "the sweep of %+v in %s finds no end", o, p)
		c := cmds[0]
		reply := p.answer(c)
		reply.Strand, reply.Seq = c.Strand, c.Seq
		cmds = append(cmds[1:], m.Handle(reply)...)
	}
	require.True(t, m.Over())
}

// answer replies to a command as an API server does.
func (p *twoPeers) answer(c protocol.Command) protocol.Reply {
	applied := protocol.Reply{Class: protocol.Applied, Code: protocol.OK}
	at := p.objects[c.Peer]
	refused := func(code protocol.Code) protocol.Reply { return protocol.Reply{Code: code} }
	fits := func() bool { return (c.UID == "" || c.UID == at.UID) && (c.RV == "" || c.RV == at.RV) }
	write := func(o protocol.Object) {
		p.writes++
		o.RV = "w" + strconv.Itoa(p.writes)
		p.objects[c.Peer] = &o
		applied.Object = o
		if o.Terminating && !o.Finalizer {
			p.objects[c.Peer] = nil
		}
	}
	switch c.Verb {
	case protocol.ReadPeerSet:
		applied.PeerSet = p.set(c.Peer)
	case protocol.Count:
		applied.Requests = protocol.Requests{Homes: 1, Requested: 1}
	case protocol.Create:
		if at != nil {
			return refused(protocol.Exists)
		}
		o := c.Object
		o.UID, o.Digest = fmt.Sprintf("n-%s", c.Peer), "d"+o.Payload
		write(o)
	case protocol.Read, protocol.Put, protocol.Delete:
		switch {
		case at == nil:
			return refused(protocol.NotFound)
		case c.Verb == protocol.Read:
			applied.Object = *at
		case !fits():
			return refused(protocol.Conflict)
		case c.Verb == protocol.Delete:
			o := *at
			o.Terminating = true
			if !at.Terminating || !o.Finalizer {
				write(o)
			}
			applied.Object = protocol.Object{}
		default:
			o := c.Object
			o.UID, o.Terminating, o.Foreign, o.Valve = at.UID, at.Terminating, at.Foreign, at.Valve
			if o.Digest = "d" + o.Payload; o.Payload == "" {
				o.Digest = ""
			}
			write(o)
		}
	}
	return applied
}
