// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// longestMessage is the greatest length of a Message, in bytes.
const longestMessage = 1024

// Message returns the error of a call of this package as one line for the message of a condition, with the remedy; empty
// if err is nil. It has at most 1024 bytes.
//
// Unlike Error, Message is equal for repeated attempts that fail for the same reason: it omits addresses, times, numbers
// of attempts and the ID of the failed operation, and lists peers in the order of their names. So a controller that
// writes it to a condition writes once. It has the texts of API servers and webhooks that reject an object as they are.
// Log the error, too: Error has the details. Message does no I/O.
func Message(err error) string {
	if err == nil {
		return ""
	}
	t := treeOf(err, "")
	texts := t.class().texts(t)
	slices.Sort(texts)
	text := strings.Join(slices.Compact(texts), "; ")
	if t.is(ErrEnded) {
		text = joined(ErrEnded.Error(), text)
	}
	text = strings.ReplaceAll(text, "\n", " ")
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage-3], "") + "..."
	}
	return text
}

func always(text string) func(tree) []string { return func(tree) []string { return []string{text} } }

// textsOf returns the texts of all errors of type E.
func textsOf[E error](text func(E) string) func(tree) []string {
	return func(t tree) (texts []string) {
		for _, e := range typed[E](t) {
			texts = append(texts, text(e))
		}
		return texts
	}
}

// textsOfRestored returns the texts about peers that were restored from an older state, and about the names that their
// objects have.
func textsOfRestored(t tree) []string {
	texts := textsOf((*HeldError).stable)(t)
	for in := range t.all() {
		peer := in.peer
		if e, ok := in.err.(*ReturnedError); ok { //nolint:errorlint // each error of the tree
			peer = e.Peer
		}
		if peer != "" && in.is(ErrReturned) {
			texts = append(texts, fmt.Sprintf("peer %[1]s was restored from an older state: bring it back (atollctl peer comeback %[1]s)", peer))
		}
	}
	if len(texts) == 0 {
		return []string{ErrReturned.Error()}
	}
	return texts
}

// textsOfNoOwner returns the texts about namespaces without an owner, without the failed read of the owner.
func textsOfNoOwner(t tree) []string {
	const remedy = ": add it first"
	texts := t.around([]error{ErrNoOwner})
	for i, text := range texts {
		if before, _, cut := strings.Cut(text, remedy); cut {
			texts[i] = before + remedy
		}
	}
	return texts
}

// textsOfEnd returns the causes of an operation without effect. Message puts the text of ErrEnded before them.
func textsOfEnd(t tree) []string {
	causes := slices.DeleteFunc(t.leaves(), func(text string) bool { return text == ErrAborted.Error() || text == ErrEnded.Error() })
	if len(causes) == 0 && !t.is(ErrEnded) {
		return []string{ErrAborted.Error()}
	}
	return causes
}

// stable returns what Error returns without the operation, its start and its coordinator.
func (e *HeldError) stable() string {
	if e.rivals != nil {
		return fmt.Sprintf("%s %s: %s", e.Kind.Kind, keyString(e.Key), e.rivals.text)
	}
	how := e.Stage
	if e.Operation == "" {
		how = "applied there without a claim"
	}
	return fmt.Sprintf("%s %s is held by peer %s (%s)%s", e.Kind.Kind, keyString(e.Key), e.Holder, how, e.remedy())
}

func (e *HeldError) isLost() bool { return e.Lost != "" }

// stable returns what Error returns without the revision.
func (e *ConflictError) stable() string {
	return fmt.Sprintf("%s %s was changed by another write: read it again and repeat the operation", e.Kind.Kind, keyString(e.Key))
}

// stable returns what Error returns without the operation. The cause has the words of Message.
func (e *InDoubtError) stable() string {
	return joined("the outcome is not known yet", e.Settles, Message(e.Err))
}

// stable returns what Error returns, with the objects in a fixed order.
func (e *BlockedError) stable() string {
	sorted := *e
	sorted.Blocking = slices.SortedFunc(slices.Values(e.Blocking), func(a, b Occupant) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return sorted.Error()
}
