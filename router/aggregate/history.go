// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import "slices"

const (
	// historyMessages and historyBytes limit a history. The latest message is always kept.
	historyMessages = 1024
	historyBytes    = 8 << 20
)

// history is the latest messages of a feed, in order. Each message has a number, counted from the first message of the
// feed. A history does no I/O and is not safe for concurrent use.
type history struct {
	first uint64 // the number of the oldest message
	kept  []news
	bytes int64
}

// next returns the number of the next message.
func (h *history) next() uint64 { return h.first + uint64(len(h.kept)) }

// add appends a message, and forgets the oldest ones.
func (h *history) add(n news) {
	h.kept = append(h.kept, n)
	h.bytes += n.object.size()
	drop := 0
	for ; drop < len(h.kept)-1 && (len(h.kept)-drop > historyMessages || h.bytes > historyBytes); drop++ {
		h.bytes -= h.kept[drop].object.size()
		h.kept[drop] = news{} // the array may live on
	}
	h.kept, h.first = h.kept[drop:], h.first+uint64(drop)
}

// after returns the messages from a number on. It returns false if some of them are forgotten.
func (h *history) after(number uint64) ([]news, bool) {
	if number < h.first || number > h.next() {
		return nil, false
	}
	return slices.Clone(h.kept[number-h.first:]), true
}

// find returns the number of the first message that a consumer lacks who has the state with the given stamp at version
// rv. Equal stamps mean equal states, at whatever version. A stamp of zero is unknown: then the version must be that of a
// message, or lie between two messages without a repair in between. It returns false if the history has no such place.
func (h *history) find(rv string, stamp uint64) (uint64, bool) {
	if stamp == 0 {
		return h.findVersion(rv)
	}
	number, ok := uint64(0), false
	for i := len(h.kept) - 1; i >= 0; i-- {
		if n := h.kept[i]; n.at != "" && n.stamp == stamp {
			if number, ok = h.first+uint64(i)+1, true; notAfter(n.at, rv) {
				break
			}
		}
	}
	return number, ok
}

func (h *history) findVersion(rv string) (uint64, bool) {
	after := "" // the version of the next message, if no change without a version is in between
	for i := len(h.kept) - 1; i >= 0; i-- {
		switch n := h.kept[i]; {
		case n.at == rv, n.at != "" && after != "" && notAfter(n.at, rv) && !notAfter(after, rv):
			return h.first + uint64(i) + 1, true
		case n.at != "":
			after = n.at
		case n.object != nil:
			after = ""
		}
	}
	return 0, false
}

// notAfter reports whether version a is at most b. Of versions that are not numbers, only equal ones can be compared.
func notAfter(a, b string) bool {
	m, ok := number(a)
	n, comparable := number(b)
	return a == b || ok && comparable && m <= n
}

// compact returns the message with an object of its own memory, and with labels of sets.
func (n news) compact(sets labelSets) news {
	if n.object == nil || n.object.json == nil {
		return n
	}
	o := *n.object
	o.json, o.labels = o.json.Compact(), sets.intern(o.labels)
	o.json.Labels = o.labels
	n.object = &o
	return n
}
