// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

// heap is a binary heap of parties. On top is the party that comes before all others in its order.
type heap struct {
	parties []*party
	before  func(a, b *party) bool
}

func newHeap(ps []party, in func(*party) bool, before func(a, b *party) bool) *heap {
	h := &heap{parties: make([]*party, 0, len(ps)), before: before}
	for i := range ps {
		if in(&ps[i]) {
			h.parties = append(h.parties, &ps[i])
		}
	}
	for i := len(h.parties)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
	return h
}

func (h *heap) top() *party { return h.parties[0] }

// settle restores the order after the top party has changed. If stays is false, it first removes
// the top party.
func (h *heap) settle(stays bool) {
	if !stays {
		last := len(h.parties) - 1
		h.parties[0] = h.parties[last]
		h.parties = h.parties[:last]
	}
	h.sink(0)
}

func (h *heap) sink(i int) {
	for {
		first := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h.parties); c++ {
			if h.before(h.parties[c], h.parties[first]) {
				first = c
			}
		}
		if first == i {
			return
		}
		h.parties[i], h.parties[first] = h.parties[first], h.parties[i]
		i = first
	}
}
