// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/router/aggregate/internal/splice"
)

// page is one answer of a region to a list request: decoded, or as JSON. Its bytes count against the budget until it is
// released.
type page struct {
	kind            string
	resourceVersion string
	next            string // the continue token
	count           int    // of its objects
	sum             uint64 // of the fingerprints of its objects, if requested

	objects []unstructured.Unstructured // decoded; nil if the objects are in json
	json    *splice.List
	held    *hold
	buffer  *bytes.Buffer // of the objects in json
}

func decodedPage(list *unstructured.UnstructuredList, held *hold) *page {
	return &page{
		kind: list.GetKind(), resourceVersion: list.GetResourceVersion(), next: list.GetContinue(),
		count: len(list.Items), objects: list.Items, held: held,
	}
}

// append adds the objects of the next page to p.
func (p *page) append(next *page) {
	p.objects, p.count, p.sum, p.next = append(p.objects, next.objects...), p.count+next.count, p.sum+next.sum, next.next
}

// keep makes the memory of p outlive its release.
func (p *page) keep() { p.buffer = nil }

// release releases the memory and the budget of p. It is idempotent.
func (p *page) release() {
	if p == nil {
		return
	}
	if p.buffer != nil {
		p.buffer.Reset()
		p.held.account.budget.answers.Put(p.buffer)
		p.buffer, p.json = nil, nil
	}
	p.held.release()
}

// Encoding is how a list or a watch returns objects as JSON.
type Encoding struct {
	Form Form
	// Compressed asks the regions for compressed answers. That saves bandwidth, and costs more processor time than all
	// else.
	Compressed bool
}

// Form is the form of an object in JSON.
type Form int

const (
	// Objects are whole objects.
	Objects Form = iota
	// Metadata is the metadata of objects: PartialObjectMetadata.
	Metadata
	// Table is a table with the columns of the regions and a column Region.
	Table
	// TableWithObjects is a Table whose rows have whole objects in place of their metadata.
	TableWithObjects
)

// accept returns the media type that asks an API server for a list or a watch in this form.
func (f Form) accept(watch bool) string {
	switch f {
	case Metadata:
		if watch {
			return "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		}
		return "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	case Table, TableWithObjects:
		return "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"
	default:
		return "application/json"
	}
}

func (f Form) table() bool { return f == Table || f == TableWithObjects }

// readJSON sends a list request to s, or a request for the table of one object, and reads the answer as JSON.
func (a *API) readJSON(ctx context.Context, s *source, e *encoder, name string, opts metav1.ListOptions, held *hold) (*page, error) {
	req, err := s.request(e.enc, name, opts)
	if err != nil {
		return nil, err
	}
	body, err := req.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	buffer, ok := a.account.budget.answers.Get().(*bytes.Buffer)
	if !ok {
		buffer = &bytes.Buffer{}
	}
	buffer.Grow(int(min(opts.Limit*s.size, a.largest())) + bytes.MinRead)
	p := &page{held: held, buffer: buffer}
	if _, err := buffer.ReadFrom(body); err != nil {
		return p, err
	}
	if p.json, err = e.list(buffer.Bytes()); err != nil {
		return p, fmt.Errorf("list of %s: %w", s.regional.GroupResource(), err)
	}
	if !e.enc.Form.table() && p.json.Kind == "Table" {
		return p, notAcceptable(s)
	}
	p.kind, p.resourceVersion, p.next = p.json.Kind, p.json.ResourceVersion, p.json.Continue
	p.count, p.sum = len(p.json.Objects), p.json.Sum
	s.learn(p.count, buffer.Len(), a.largest())
	return p, nil
}

// request returns a request for objects of s, or for the object with the given name.
func (s *source) request(enc Encoding, name string, opts metav1.ListOptions) (*rest.Request, error) {
	params, err := queryparams.Convert(&opts)
	if err != nil {
		return nil, fmt.Errorf("options of a list: %w", err)
	}
	path := []string{"api", s.regional.Version}
	if s.regional.Group != "" {
		path = []string{"apis", s.regional.Group, s.regional.Version}
	}
	if s.namespace != "" {
		path = append(path, "namespaces", s.namespace)
	}
	if path = append(path, s.regional.Resource); name != "" {
		path = append(path, name)
	}
	req := s.raw.Get().AbsPath(path...).SetHeader("Accept", enc.Form.accept(opts.Watch))
	if !enc.Compressed {
		req.SetHeader("Accept-Encoding", "identity")
	}
	for name, values := range params {
		for _, value := range values {
			req.Param(name, value)
		}
	}
	if enc.Form == TableWithObjects {
		req.Param("includeObject", "Object")
	}
	return req, nil
}

func notAcceptable(s *source) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf("%s cannot be listed in this form", s.regional.GroupResource()),
	}}
}
