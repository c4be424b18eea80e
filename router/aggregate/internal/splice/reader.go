// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"fmt"
	"slices"
	"strings"
)

// Reader reads answers. It is safe for concurrent use.
type Reader struct {
	Seed       uint64 // of the fingerprints
	Annotation string // the key of the annotation that Edits.Annotation sets
	Labels     bool   // collect the labels of objects
}

// List is an answer to a list request.
type List struct {
	APIVersion, Kind          string
	ResourceVersion, Continue string
	Objects                   []Object
	Columns                   []Column // of a table
	Sum                       uint64   // of the fingerprints
}

// Column is the definition of a column of a table.
type Column struct {
	Name string
	Text []byte // the whole definition, as JSON
}

// List reads a list, or a table with the metadata of its objects. The result shares the memory of the answer.
func (r *Reader) List(answer []byte) (*List, error) {
	s := &scanner{text: answer, seed: r.Seed}
	l := &List{}
	var cells []span
	var seen keys
	s.object(func(key []byte) uint64 {
		switch string(key) {
		case "apiVersion":
			l.APIVersion = seen.text(s, 0)
		case "kind":
			l.Kind = seen.text(s, 1)
		case "metadata":
			seen.once(s, 2)
			r.listMeta(s, l)
		case "items":
			seen.once(s, 3)
			if s.peek() == 'n' {
				s.skip()
				break
			}
			s.array(func() uint64 {
				o := l.next(s)
				r.object(s, o)
				o.whole = o.object
				return 0
			})
		case "columnDefinitions":
			seen.once(s, 4)
			s.array(func() uint64 {
				l.Columns = append(l.Columns, r.column(s))
				return 0
			})
		case "rows":
			seen.once(s, 3) // a table has no items
			if s.peek() == 'n' {
				s.skip()
				break
			}
			s.array(func() uint64 {
				cells = r.row(s, l.next(s), cells)
				return 0
			})
		default:
			s.skip()
		}
		return 0
	})
	s.end()
	if !plain(l.Kind) || !plain(l.APIVersion) {
		s.fail(errStructure)
	}
	if s.err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", s.err)
	}
	apiVersion, kind := hashText(r.Seed, l.APIVersion), hashText(r.Seed, strings.TrimSuffix(l.Kind, "List"))
	inherited := pair(hashText(r.Seed, "apiVersion"), apiVersion) + pair(hashText(r.Seed, "kind"), kind)
	for i := range l.Objects {
		if o := &l.Objects[i]; !o.typed() && o.cells == nil {
			o.Print = object(o.pairs+inherited, o.keys+2) // as client-go decodes the objects of a list
		}
		l.Sum += l.Objects[i].Print
	}
	return l, nil
}

// smallest bounds the memory that next makes room for to that of the answer, whatever the size of the first object.
const smallest = 512

// next appends an object to the list. After the first one, it makes room for the rest of the answer at once, as if all
// objects had the same size.
func (l *List) next(s *scanner) *Object {
	if len(l.Objects) == 1 {
		l.Objects = slices.Grow(l.Objects, min((len(s.text)-s.at)/max(1, l.Objects[0].whole.size()), len(s.text)/smallest))
	}
	l.Objects = append(l.Objects, Object{answer: s.text})
	return &l.Objects[len(l.Objects)-1]
}

// plain reports whether JSON has no escapes for text.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\\<>&`, r) })
}

// keys records which of the keys with these numbers have occurred.
type keys uint16

func (k *keys) once(s *scanner, number int) {
	if *k&(1<<number) != 0 {
		s.fail(errTwice)
	}
	*k |= 1 << number
}

func (k *keys) text(s *scanner, number int) string {
	k.once(s, number)
	content, _ := s.string()
	return string(content)
}

func (r *Reader) listMeta(s *scanner, l *List) {
	var seen keys
	s.object(func(key []byte) uint64 {
		switch string(key) {
		case "resourceVersion":
			l.ResourceVersion = seen.text(s, 0)
		case "continue":
			l.Continue = seen.text(s, 1)
		default:
			s.skip()
		}
		return 0
	})
}

func (r *Reader) column(s *scanner) (c Column) {
	var seen keys
	s.peek()
	from := s.at
	s.object(func(key []byte) uint64 {
		if string(key) != "name" {
			return s.skip()
		}
		c.Name = seen.text(s, 0)
		return 0
	})
	c.Text = s.text[from:s.at]
	return c
}

// row reads a row of a table. It appends the cells to cells.
func (r *Reader) row(s *scanner, o *Object, cells []span) []span {
	var seen keys
	s.peek()
	o.answer, o.whole.from = s.text, s.at
	s.object(func(key []byte) uint64 {
		switch string(key) {
		case "cells":
			seen.once(s, 0)
			first := len(cells)
			s.array(func() uint64 {
				s.peek()
				from := s.at
				s.skip()
				cells = append(cells, span{from, s.at})
				return 0
			})
			o.cells = cells[first:len(cells):len(cells)]
		case "object":
			seen.once(s, 1)
			r.object(s, o)
		default:
			s.skip()
		}
		return 0
	})
	if len(o.cells) == 0 || !o.object.known() {
		s.fail(errStructure)
	}
	o.whole.to = s.at
	return cells
}

// object reads an object.
func (r *Reader) object(s *scanner, o *Object) {
	var seen keys
	s.peek()
	o.object.from = s.at
	s.object(func(key []byte) uint64 {
		var print uint64
		keyPrint := hashText(s.seed, key)
		switch string(key) {
		case "apiVersion":
			seen.once(s, 0)
			o.places.apiVersion, print = s.nonempty()
		case "kind":
			seen.once(s, 1)
			o.places.kind, print = s.nonempty()
		case "metadata":
			seen.once(s, 2)
			print = r.metadata(s, o)
		default:
			print = s.skip()
		}
		o.pairs += pair(keyPrint, print)
		o.keys++
		return print
	})
	o.object.to = s.at
	o.Print = object(o.pairs, o.keys)
	if !o.places.metadata.known() {
		s.fail(errStructure)
	}
}

// nonempty reads a string and returns the place of its content.
func (s *scanner) nonempty() (span, uint64) {
	s.peek()
	from := s.at + 1
	content, print := s.string()
	if len(content) == 0 {
		s.fail(errStructure)
	}
	return span{from, s.at - 1}, print
}

func (r *Reader) metadata(s *scanner, o *Object) uint64 {
	p := &o.places
	var seen keys
	text := func(number int, to *string, at *span) uint64 {
		seen.once(s, number)
		s.peek()
		from := s.at + 1
		content, print := s.string()
		*to, *at = string(content), span{from, s.at - 1}
		return print
	}
	var none span
	s.peek()
	p.metadata.from = s.at
	print := s.object(func(key []byte) uint64 {
		switch string(key) {
		case "name":
			return text(0, &o.Name, &p.name)
		case "namespace":
			return text(1, &o.Namespace, &none)
		case "uid":
			return text(2, &o.UID, &none)
		case "resourceVersion":
			return text(3, &o.ResourceVersion, &p.version)
		case "labels":
			seen.once(s, 4)
			return r.labels(s, o)
		case "annotations":
			seen.once(s, 5)
			return r.annotations(s, p)
		}
		return s.skip()
	})
	p.metadata.to = s.at
	return print
}

func (r *Reader) labels(s *scanner, o *Object) uint64 {
	if !r.Labels || s.peek() != '{' {
		return s.skip()
	}
	return s.object(func(key []byte) uint64 {
		name := string(key)
		if s.peek() != '"' {
			return s.skip()
		}
		value, print := s.string()
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		o.Labels[name] = string(value)
		return print
	})
}

func (r *Reader) annotations(s *scanner, p *places) uint64 {
	s.peek()
	p.annotations.from = s.at
	defer func() { p.annotations.to = s.at }()
	if s.peek() != '{' {
		return s.skip()
	}
	var seen keys
	return s.object(func(key []byte) uint64 {
		p.annotated = true
		if string(key) != r.Annotation {
			return s.skip()
		}
		seen.once(s, 0)
		s.peek()
		from := s.at
		print := s.skip()
		p.annotation = span{from, s.at}
		return print
	})
}

// Event is an event of a watch. List has the object or, of a table, the rows.
type Event struct {
	Type   string
	Object []byte // as JSON
	List   *List  // nil for an event of type ERROR
}

// Event reads an event of a watch. The result shares the memory of text.
func (r *Reader) Event(text []byte) (Event, error) {
	s := &scanner{text: text}
	e := Event{}
	var seen keys
	s.object(func(key []byte) uint64 {
		switch string(key) {
		case "type":
			e.Type = seen.text(s, 0)
		case "object":
			seen.once(s, 1)
			s.peek()
			from := s.at
			s.skip()
			e.Object = text[from:s.at]
		default:
			s.skip()
		}
		return 0
	})
	s.end()
	if s.err == nil && e.Object == nil {
		s.fail(errStructure)
	}
	if s.err != nil {
		return e, fmt.Errorf("an event cannot be read: %w", s.err)
	}
	if e.Type == "ERROR" {
		return e, nil
	}
	var err error
	if e.List, err = r.eventList(e.Object); err != nil {
		return e, fmt.Errorf("an event cannot be read: %w", err)
	}
	return e, nil
}

// eventList reads the object of an event: a table, or one object.
func (r *Reader) eventList(text []byte) (*List, error) {
	one := &List{Objects: []Object{{answer: text}}}
	s := &scanner{text: text, seed: r.Seed}
	o := &one.Objects[0]
	r.object(s, o)
	s.end()
	o.whole = o.object
	if kind := o.places.kind; s.err == nil && kind.known() && string(text[kind.from:kind.to]) == "Table" {
		return r.List(text)
	}
	return one, s.err
}
