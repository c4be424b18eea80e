// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/region"
)

// tree is an error with the errors that it wraps, also those of several peers.
type tree struct {
	err   error
	peer  region.PeerName // of the *region.Error around it; else empty
	inner []tree
}

func treeOf(err error, at region.PeerName) tree {
	if e, ok := err.(*region.Error); ok && e.Peer != "" { //nolint:errorlint // each error of the tree
		at = e.Peer
	}
	t := tree{err: err, peer: at}
	var wrapped []error
	switch e := err.(type) { //nolint:errorlint // each error of the tree
	case interface{ Unwrap() error }:
		wrapped = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		wrapped = e.Unwrap()
	case interface{ WrappedErrors() []error }: // region.PartialError
		wrapped = e.WrappedErrors()
	}
	for _, e := range wrapped {
		if e != nil {
			t.inner = append(t.inner, treeOf(e, at))
		}
	}
	return t
}

// all yields the error and all errors that it wraps.
func (t tree) all() iter.Seq[tree] {
	return func(yield func(tree) bool) { t.walk(yield) }
}

func (t tree) walk(yield func(tree) bool) bool {
	return yield(t) && !slices.ContainsFunc(t.inner, func(in tree) bool { return !in.walk(yield) })
}

// is reports whether the tree has one of the targets, like errors.Is.
func (t tree) is(targets ...error) bool {
	for in := range t.all() {
		if slices.ContainsFunc(targets, func(target error) bool { return errors.Is(in.err, target) }) {
			return true
		}
	}
	return false
}

// typed returns all errors of type E in the tree.
func typed[E error](t tree) (found []E) {
	for in := range t.all() {
		if e, ok := in.err.(E); ok { //nolint:errorlint // each error of the tree
			found = append(found, e)
		}
	}
	return found
}

// around returns the texts of the errors that wrap one of the sentinels directly: the errors around those may have IDs in
// their texts.
func (t tree) around(sentinels []error) (texts []string) {
	for _, in := range t.inner {
		if in.is(sentinels...) && !slices.Contains(sentinels, in.err) {
			texts = append(texts, in.around(sentinels)...)
		}
	}
	switch {
	case len(texts) > 0:
		return texts
	case t.isJoin():
		for _, in := range t.inner {
			if in.is(sentinels...) {
				texts = append(texts, in.text())
			}
		}
		return texts
	default:
		return []string{t.text()}
	}
}

// isJoin reports whether errors.Join or a call to several peers has put errors together that are about different things.
func (t tree) isJoin() bool {
	texts := make([]string, len(t.inner))
	for i, in := range t.inner {
		texts[i] = in.err.Error()
	}
	_, partial := t.err.(*region.PartialError) //nolint:errorlint // each error of the tree
	return partial || len(texts) > 0 && t.err.Error() == strings.Join(texts, "\n")
}

// leaves returns the texts of the errors that wrap no other.
func (t tree) leaves() (texts []string) {
	if len(t.inner) == 0 {
		return []string{t.text()}
	}
	for _, in := range t.inner {
		texts = append(texts, in.leaves()...)
	}
	return texts
}

// text returns the text of the error with the name of its peer.
func (t tree) text() string {
	if t.peer == "" {
		return t.err.Error()
	}
	return about(t.peer, t.err.Error())
}
