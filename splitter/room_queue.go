// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"container/list"
	"iter"
)

// queue has the parents that lack room in one cluster, with the request of one replica. The first has waited longest.
type queue struct {
	order list.List
	at    map[holder]*list.Element
}

type waiter struct {
	of   holder
	each amounts
}

func newQueue() *queue { return &queue{at: map[holder]*list.Element{}} }

func (q *queue) empty() bool { return len(q.at) == 0 }

// add adds a parent, which keeps its place if it waits already.
func (q *queue) add(of holder, each amounts) {
	if e, ok := q.at[of]; ok {
		e.Value = waiter{of, each}
		return
	}
	q.at[of] = q.order.PushBack(waiter{of, each})
}

func (q *queue) remove(of holder) {
	if e, ok := q.at[of]; ok {
		q.order.Remove(e)
		delete(q.at, of)
	}
}

// all yields the parents in order. The loop may remove the parent that it handles.
func (q *queue) all() iter.Seq2[holder, amounts] {
	return func(yield func(holder, amounts) bool) {
		for e := q.order.Front(); e != nil; {
			w, _ := e.Value.(waiter)
			e = e.Next()
			if !yield(w.of, w.each) {
				return
			}
		}
	}
}
