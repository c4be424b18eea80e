// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"
	"strconv"
)

func (k *keyer) set(s *PeerSet) {
	if s == nil {
		k.n(253)
		return
	}
	k.id(s.RV)
	k.members(s)
	k.n(int(s.Epoch / lifetime))
	k.s(s.Change.ID)
	k.s(string(s.Change.Kind))
	k.s(s.Change.Peer)
	k.s(s.Change.Anchor)
	k.n(int(s.Change.Heartbeat))
	k.b(s.Change.Over)
}

// lives writes how often each peer has rejoined, as its epoch shows (see lifetime).
func (k *keyer) lives(epochs map[string]int64) {
	for i := range 8 {
		if epoch, ok := epochs[peerName(i)]; ok {
			k.n(int(epoch / lifetime))
		}
	}
}

func (k *keyer) members(s *PeerSet) {
	k.joined(s.Self.Peer, s.Self.State)
	for _, m := range s.Members {
		k.joined(m.Peer, m.State)
	}
	for _, d := range s.Departed {
		k.joined(d.Peer, d.How)
	}
}

func (k *keyer) change(ch *changer) {
	k.s(ch.op.ID)
	k.s(string(ch.op.Kind))
	k.s(ch.op.Peer)
	k.s(string(ch.result.Ending))
	for i := range ch.early {
		k.object(&ch.early[i].Object)
	}
	k.s(ch.record.Anchor + strconv.Itoa(ch.record.Attempt))
	k.n(int(ch.record.Epoch / lifetime))
	c := ch.m
	if c == nil {
		return
	}
	k.s(string(c.Phase))
	k.s(c.Record.Anchor + strconv.Itoa(c.Record.Attempt))
	k.n(int(c.Record.Epoch / lifetime))
	for _, n := range []int{c.At, c.Runs, c.Rounds, len(c.Result.Blocking)} {
		k.n(n)
	}
	k.b(c.Worked, c.Stuck, c.Held, c.Sent, c.Retreat, c.Stopping, c.Expired)
	k.b(c.Resumed, c.Shared, c.Again, c.AnchorNotHeld, c.HomeRetired, c.Result.Keep)
	k.s(string(c.Result.Reason))
	for _, p := range c.Order {
		k.s(p)
	}
	k.b(c.Kept != nil)
	for _, key := range slices.Sorted(maps.Keys(c.Kept)) {
		k.s(key)
		k.id(c.Kept[key])
	}
	k.n(252)
	for i := range 8 {
		if s, ok := c.Sets[peerName(i)]; ok {
			k.n(i)
			k.members(&s)
			k.b(c.holds(s), s.Change.Over)
		}
	}
	for _, s := range c.Later {
		k.s(s.Peer)
		k.object(&s.Sub.Met)
	}
	for i := range c.Strands {
		s := &c.Strands[i]
		if s.Over {
			continue
		}
		k.joined(string(s.Task), s.Peer)
		k.s(string(s.Step))
		k.n(s.Tries)
		k.n(s.Quiet)
		k.s(s.Set.Change.ID)
		k.id(s.Set.RV)
		if s.Task == chSub {
			k.s(string(s.Sub.Action))
			k.object(&s.Sub.Met)
		}
	}
	k.n(251)
}

func (w *world) keySets(k *keyer) {
	if len(w.cfg.changes) == 0 {
		return
	}
	for i := range w.store.cells {
		k.set(w.store.cells[i].set)
	}
}
