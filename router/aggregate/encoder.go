// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/atoll-dev/atoll/router/aggregate/internal/splice"
)

// encoder passes the objects of pages to a func, as JSON of the common API.
type encoder struct {
	api     *API
	q       query
	enc     Encoding
	fn      func(object []byte) error
	reader  splice.Reader
	columns []splice.Column // of the merged table, without the column of regions; nil: not known yet
	united  bool            // the regions have different columns
	scratch []byte
}

func (a *API) encoder(q query, enc Encoding, fn func(object []byte) error) *encoder {
	return &encoder{api: a, q: q, enc: enc, fn: fn, reader: splice.Reader{Annotation: RegionAnnotation}}
}

// eventEncoder returns an encoder of a feed, whose fingerprints have the given seed.
func (a *API) eventEncoder(q query, enc Encoding, seed uint64) *encoder {
	e := a.encoder(q, enc, nil)
	e.reader.Seed, e.reader.Labels = seed, true
	return e
}

// regionColumn is the definition of the column of regions.
const regionColumn = `{"name":"Region","type":"string","format":"","description":"The region of the object.","priority":0}`

// unite sets the columns to those of all regions, in the order in which the regions first have them. If regions differ,
// it returns the columns for the cursor.
func (e *encoder) unite(pages []*page) string {
	for _, p := range pages {
		if p == nil || p.json == nil {
			continue
		}
		if e.columns != nil && !slices.EqualFunc(e.columns, p.json.Columns, sameColumn) {
			e.united = true
		}
		for _, c := range p.json.Columns {
			if !slices.ContainsFunc(e.columns, func(other splice.Column) bool { return sameColumn(c, other) }) {
				e.columns = append(e.columns, splice.Column{Name: c.Name, Text: bytes.Clone(c.Text)})
			}
		}
	}
	if !e.united {
		return ""
	}
	return e.columnsText()
}

func sameColumn(a, b splice.Column) bool { return a.Name == b.Name }

func (e *encoder) columnsText() string {
	texts := make([]string, len(e.columns))
	for i, c := range e.columns {
		texts[i] = string(c.Text)
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// resume sets the columns to those of the first page.
func (e *encoder) resume(c cursor) error {
	e.reader.Seed = c.seed
	if c.columns == "" {
		return nil
	}
	var texts []json.RawMessage
	if err := json.Unmarshal([]byte(c.columns), &texts); err != nil {
		return fmt.Errorf("aggregate: columns of a continue token: %w", err)
	}
	for _, text := range texts {
		var definition metav1.TableColumnDefinition
		if err := json.Unmarshal(text, &definition); err != nil {
			return fmt.Errorf("aggregate: columns of a continue token: %w", err)
		}
		e.columns = append(e.columns, splice.Column{Name: definition.Name, Text: text})
	}
	e.united = true
	return nil
}

// list reads an answer. If it has objects in place of a table, list reads the table of the objects.
func (e *encoder) list(answer []byte) (*splice.List, error) {
	list, err := e.reader.List(answer)
	if err != nil || !e.enc.Form.table() || list.Kind == "Table" {
		return list, err
	}
	if answer, err = tabulated(answer, e.enc.Form == TableWithObjects); err != nil {
		return nil, err
	}
	return e.reader.List(answer)
}

// head gives a list without objects the type and the columns of its form.
func (e *encoder) head(list *unstructured.UnstructuredList) {
	switch {
	case e.enc.Form.table():
		list.SetAPIVersion("meta.k8s.io/v1")
		list.SetKind("Table")
		columns := []any{}
		for i, c := range e.columns {
			columns = append(columns, decoded(c.Text))
			if i == 0 {
				columns = append(columns, decoded([]byte(regionColumn)))
			}
		}
		list.Object["columnDefinitions"] = columns
	case e.enc.Form == Metadata:
		list.SetAPIVersion("meta.k8s.io/v1")
		list.SetKind("PartialObjectMetadataList")
	}
}

// decoded returns the value of JSON that was read before.
func decoded(text []byte) (value any) {
	_ = utiljson.Unmarshal(text, &value)
	return value
}

// page passes each object of a page of s to e.fn, encoded as an object of the common API.
func (e *encoder) page(s *source, p *page) error {
	for i := range p.objects { // they are decoded, and belong to the common API already
		data, err := e.marshal(&p.objects[i])
		if err == nil {
			err = e.fn(data)
		}
		if err != nil {
			return err
		}
	}
	if p.json == nil {
		return nil
	}
	if e.columns == nil {
		_ = e.unite([]*page{p})
	}
	edits := e.edits(s)
	if e.united {
		edits.Columns = e.order(p.json.Columns)
	}
	if len(e.q.types) > 1 {
		edits.Type = e.typeIn(s, p.kind)
	}
	for i := range p.json.Objects {
		o := &p.json.Objects[i]
		if o.ResourceVersion != "" {
			rv, err := objectVersion(s.id, o.ResourceVersion).encode(e.api.opts.Keys)
			if err != nil {
				return err
			}
			edits.ResourceVersion = rv
		}
		e.scratch = e.reader.Append(e.scratch[:0], o, edits)
		if err := e.fn(e.scratch); err != nil {
			return err
		}
	}
	return nil
}

// edits returns the edits of all objects of s.
func (e *encoder) edits(s *source) splice.Edits {
	edits := splice.Edits{Annotation: s.region.String()}
	if whole := e.enc.Form == Objects || e.enc.Form == TableWithObjects; whole && s.common.GroupVersion() != s.regional.GroupVersion() {
		edits.APIVersion = s.common.GroupVersion().String()
	}
	if e.api.opts.Qualify {
		edits.Suffix = nameSeparator + s.region.String()
	}
	if e.enc.Form.table() {
		edits.Cell = s.region.String()
	}
	return edits
}

// typeIn returns the apiVersion and the kind of the objects of s in a list of the given kind.
func (e *encoder) typeIn(s *source, list string) [2]string {
	kind := strings.TrimSuffix(list, "List")
	if e.enc.Form == Metadata {
		return [2]string{"meta.k8s.io/v1", kind}
	}
	return [2]string{s.common.GroupVersion().String(), kind}
}

// order returns for each merged column its place among own, the columns of one region; -1 if own lacks the column. It
// leaves out the first column of each, which is the name.
func (e *encoder) order(own []splice.Column) []int {
	order := make([]int, 0, len(e.columns))
	for _, c := range e.columns[1:] {
		place := slices.IndexFunc(own, func(other splice.Column) bool { return sameColumn(c, other) })
		order = append(order, max(place-1, -1))
	}
	return order
}

// event returns the object of an event with the resourceVersion rv. A decoded object belongs to the common API already.
func (e *encoder) event(s *source, o *observed, rv string) (runtime.Object, error) {
	var text []byte
	if o.decoded != nil {
		o.decoded.SetResourceVersion(rv)
		var err error
		if text, err = e.marshal(o.decoded); err != nil {
			return nil, err
		}
	} else {
		edits := e.edits(s)
		edits.ResourceVersion = rv
		if o.listed != "" && !e.enc.Form.table() {
			edits.Type = e.typeIn(s, o.listed)
		}
		text = e.reader.Append(nil, o.json, edits)
	}
	if e.enc.Form.table() {
		return e.rowTable(rv, text)
	}
	return &runtime.Unknown{Raw: text, ContentType: runtime.ContentTypeJSON}, nil
}

// rowTable returns the table of one row.
func (e *encoder) rowTable(rv string, row []byte) (*runtime.Unknown, error) {
	head := &unstructured.UnstructuredList{Object: map[string]any{}}
	e.head(head)
	head.SetResourceVersion(rv)
	text, err := json.Marshal(head.Object)
	if err != nil {
		return nil, err
	}
	text = append(append(append(text[:len(text)-1], `,"rows":[`...), row...), "]}"...)
	return &runtime.Unknown{Raw: text, ContentType: runtime.ContentTypeJSON}, nil
}

// marshal encodes a decoded object. As a row, it has no cells except its name and region.
func (e *encoder) marshal(o *unstructured.Unstructured) ([]byte, error) {
	switch {
	case e.enc.Form.table():
		cells := []any{o.GetName(), o.GetAnnotations()[RegionAnnotation]}
		for len(cells) <= len(e.columns) {
			cells = append(cells, nil)
		}
		return json.Marshal(map[string]any{"cells": cells, "object": MetadataOf(o).Object})
	case e.enc.Form == Metadata:
		o = MetadataOf(o)
	}
	return json.Marshal(o.Object)
}

// MetadataOf returns the PartialObjectMetadata of o. It shares the metadata with o.
func MetadataOf(o *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.Object["metadata"]}}
}
