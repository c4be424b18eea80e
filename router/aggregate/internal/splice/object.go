// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"bytes"
	"slices"
)

// Object is an object in an answer, or a row of a table with its object. It shares the memory of the answer.
type Object struct {
	Namespace, Name, UID, ResourceVersion string

	Labels map[string]string // only if Reader.Labels is set
	Print  uint64            // the fingerprint; of a row: that of its object

	answer []byte
	whole  span // the object or row
	object span // the object
	places places
	cells  []span // of a row

	// The print, without the type that the object gets from its list.
	pairs uint64
	keys  int
}

// places are the parts of an object that may be edited. Those of strings exclude the quotes.
type places struct {
	apiVersion, kind, name, version span
	metadata                        span
	annotations                     span // unknown if there are none
	annotated                       bool // the annotations are an object with at least one key
	annotation                      span // the value of Reader.Annotation, with quotes
}

// typed reports whether the object says its type. In a list of a built-in type it does not.
func (o *Object) typed() bool { return o.places.apiVersion.known() || o.places.kind.known() }

// Edits are changes of the text of an object. Empty fields change nothing. No string may need an escape in JSON.
type Edits struct {
	APIVersion      string // of an object that has one
	Suffix          string // of the name, also in the first cell of a row
	ResourceVersion string // of an object that has one
	Annotation      string // the value of Reader.Annotation
	// Type is the apiVersion and the kind of an object that has none.
	Type [2]string
	// Cell is a cell after the first one of a row. Columns are the numbers of the other cells, in the order of the
	// answer; -1 is a cell without a value.
	Cell    string
	Columns []int
}

// Size returns the bytes of the answer that o keeps in memory.
func (o *Object) Size() int { return len(o.answer) }

// Compact returns a copy of o that keeps only the text of the object or row in memory, not the whole answer.
func (o *Object) Compact() *Object {
	out := *o
	out.answer = bytes.Clone(o.answer[o.whole.from:o.whole.to])
	out.cells = slices.Clone(o.cells)
	p := &out.places
	spans := []*span{&out.whole, &out.object, &p.apiVersion, &p.kind, &p.name, &p.version, &p.metadata, &p.annotations, &p.annotation}
	for i := range out.cells {
		spans = append(spans, &out.cells[i])
	}
	for _, s := range spans {
		if s.known() {
			s.from, s.to = s.from-o.whole.from, s.to-o.whole.from
		}
	}
	return &out
}

// Append appends the object with edits to dst.
func (r *Reader) Append(dst []byte, o *Object, e Edits) []byte {
	c := changes{answer: o.answer}
	p := &o.places
	if e.APIVersion != "" && p.apiVersion.known() {
		c.replace(p.apiVersion, e.APIVersion)
	}
	if e.Type[0] != "" && !o.typed() {
		c.insert(o.object.from+1, `"apiVersion":"`, e.Type[0], `","kind":"`, e.Type[1], `",`)
	}
	if e.Suffix != "" && p.name.known() {
		c.insert(p.name.to, e.Suffix)
	}
	if e.ResourceVersion != "" && o.ResourceVersion != "" {
		c.replace(p.version, e.ResourceVersion)
	}
	if e.Annotation != "" {
		c.annotate(p, r.Annotation, e.Annotation)
	}
	if o.cells != nil && e.Cell != "" {
		c.replace(span{o.cells[0].from, o.cells[len(o.cells)-1].to}, o.row(e))
	}
	return c.append(dst, o.whole)
}

func (c *changes) annotate(p *places, key, value string) {
	switch {
	case p.annotation.known():
		c.replace(p.annotation, `"`, value, `"`)
	case p.annotated:
		c.insert(p.annotations.from+1, `"`, key, `":"`, value, `",`)
	case p.annotations.known():
		c.replace(p.annotations, `{"`, key, `":"`, value, `"}`)
	case p.name.known():
		c.insert(p.metadata.from+1, `"annotations":{"`, key, `":"`, value, `"},`)
	}
}

// row returns the cells of a row.
func (o *Object) row(e Edits) string {
	first := o.answer[o.cells[0].from:o.cells[0].to]
	out := append([]byte{}, first...)
	if n := len(first); n > 2 && first[0] == '"' && string(first[1:n-1]) == string(o.answer[o.places.name.from:o.places.name.to]) {
		out = append(append(out[:n-1], e.Suffix...), '"')
	}
	out = append(append(append(out, `,"`...), e.Cell...), '"')
	if e.Columns == nil {
		for _, c := range o.cells[1:] {
			out = append(append(out, ','), o.answer[c.from:c.to]...)
		}
	}
	for _, i := range e.Columns {
		out = append(out, ',')
		if i < 0 || i+1 >= len(o.cells) {
			out = append(out, "null"...)
		} else {
			out = append(out, o.answer[o.cells[i+1].from:o.cells[i+1].to]...)
		}
	}
	return string(out)
}

// changes are replacements of parts of an answer. They are few, so that inserting into a sorted array is fastest.
type changes struct {
	answer []byte
	all    [6]change
	n      int
}

type change struct {
	at   span
	with [5]string
}

func (c *changes) insert(at int, with ...string) { c.replace(span{at, at}, with...) }

func (c *changes) replace(at span, with ...string) {
	i := c.n
	for ; i > 0 && c.all[i-1].at.from > at.from; i-- {
		c.all[i] = c.all[i-1]
	}
	c.all[i] = change{at: at}
	copy(c.all[i].with[:], with)
	c.n++
}

// append appends a part of the answer, with the changes, to dst.
func (c *changes) append(dst []byte, part span) []byte {
	at := part.from
	for _, next := range c.all[:c.n] {
		dst = append(dst, c.answer[at:next.at.from]...)
		for _, text := range next.with {
			dst = append(dst, text...)
		}
		at = next.at.to
	}
	return append(dst, c.answer[at:part.to]...)
}
