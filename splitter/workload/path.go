// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"strings"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// MaxVisits is the maximum number of values of an object that are visited to read one path. Further values count as
// absent.
const MaxVisits = 10000

// maxSteps and maxPath bound a path.
const (
	maxSteps = 16
	maxPath  = 253
)

// path is a compiled v1alpha1.FieldPath.
type path []step

// step leads from a map to a field, or from a list to each of its items.
type step struct {
	name string
	each bool
}

var errPath = errors.New(`accepted: at most 16 names divided by dots, [*] or ["name"], such as spec.parts[*].template`)

// parse reads a path.
func parse(text v1alpha1.FieldPath) (path, error) {
	var p path
	if len(text) > maxPath {
		return nil, errPath
	}
	for rest := string(text); rest != ""; {
		var s step
		switch {
		case len(p) > 0 && strings.HasPrefix(rest, "[*]"):
			s, rest = step{each: true}, rest[3:]
		case len(p) > 0 && strings.HasPrefix(rest, `["`):
			name, after, ok := strings.Cut(rest[2:], `"]`)
			if !ok || name == "" || strings.Contains(name, `"`) {
				return nil, errPath
			}
			s, rest = step{name: name}, after
		default:
			if len(p) > 0 {
				var ok bool
				if rest, ok = strings.CutPrefix(rest, "."); !ok {
					return nil, errPath
				}
			}
			end := len(rest) - len(strings.TrimLeft(rest, letters))
			if end == 0 || strings.ContainsRune("-0123456789", rune(rest[0])) {
				return nil, errPath
			}
			s, rest = step{name: rest[:end]}, rest[end:]
		}
		if p = append(p, s); len(p) > maxSteps {
			return nil, errPath
		}
	}
	if len(p) == 0 {
		return nil, errPath
	}
	return p, nil
}

// letters are the characters of a name that needs no quotes.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// hasEach reports whether the path has a [*].
func (p path) hasEach() bool {
	for _, s := range p {
		if s.each {
			return true
		}
	}
	return false
}

// names returns the names of a path without [*].
func (p path) names() []string {
	var names []string
	for _, s := range p {
		names = append(names, s.name)
	}
	return names
}

// visit calls f with each value at the path. It stops after MaxVisits values on the way and at the end.
func (p path) visit(v any, f func(any)) {
	left := MaxVisits
	p.visitUpTo(&left, v, f)
}

func (p path) visitUpTo(left *int, v any, f func(any)) {
	if *left--; *left < 0 {
		return
	}
	if len(p) == 0 {
		f(v)
		return
	}
	if p[0].each {
		items, _ := v.([]any)
		for _, item := range items {
			p[1:].visitUpTo(left, item, f)
		}
		return
	}
	fields, _ := v.(map[string]any)
	if inner, ok := fields[p[0].name]; ok {
		p[1:].visitUpTo(left, inner, f)
	}
}

// overlaps reports whether the fields of the paths are equal or one is inside the other.
func (p path) overlaps(q path) bool {
	for i := range min(len(p), len(q)) {
		if p[i] != q[i] {
			return false
		}
	}
	return true
}
