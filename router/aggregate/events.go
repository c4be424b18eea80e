// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// events are the events of a watch of one region.
type events interface {
	// next waits for the next event: Added, Modified, Deleted or Bookmark. It returns io.EOF at the end of the watch,
	// and the region's error if that ends the watch.
	next() (watch.EventType, *observed, error)
	// stop ends the watch.
	stop()
}

// events begins a watch of s. A nil encoder decodes the events.
func (s *source) events(ctx context.Context, e *encoder, seed uint64, opts metav1.ListOptions) (events, error) {
	switch {
	case e != nil && s.raw != nil:
		opts.Watch = true
		req, err := s.request(e.enc, "", opts)
		if err != nil {
			return nil, err
		}
		body, err := req.Stream(ctx)
		if err != nil {
			return nil, err
		}
		return &jsonEvents{encoder: e, body: body, lines: json.NewDecoder(body)}, nil
	case e != nil && e.enc.Form.table():
		return nil, notAcceptable(s)
	}
	w, err := s.client.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return decodedEvents{w, seed}, nil
}

// decodedEvents are the events of a dynamic client.
type decodedEvents struct {
	watch watch.Interface
	seed  uint64
}

func (d decodedEvents) stop() { d.watch.Stop() }

func (d decodedEvents) next() (watch.EventType, *observed, error) {
	e, ok := <-d.watch.ResultChan()
	switch {
	case !ok:
		return "", nil, io.EOF
	case e.Type == watch.Error:
		return "", nil, apierrors.FromObject(e.Object)
	}
	o, ok := e.Object.(*unstructured.Unstructured)
	if !ok {
		return "", nil, fmt.Errorf("watch sent a %T", e.Object)
	}
	return e.Type, observedDecoded(d.seed, o), nil
}

// jsonEvents are the events of a watch whose objects stay JSON.
type jsonEvents struct {
	encoder *encoder
	body    io.ReadCloser
	lines   *json.Decoder
}

func (j *jsonEvents) stop() { _ = j.body.Close() }

func (j *jsonEvents) next() (watch.EventType, *observed, error) {
	var line json.RawMessage
	if err := j.lines.Decode(&line); err != nil {
		syntax := (*json.SyntaxError)(nil)
		if limit := (*limitError)(nil); errors.As(err, &limit) || errors.As(err, &syntax) {
			return "", nil, err
		}
		return "", nil, io.EOF // as client-go treats a connection that ends
	}
	e, err := j.encoder.reader.Event(line)
	if err != nil {
		return "", nil, err
	}
	if e.List == nil {
		status := &metav1.Status{}
		if err := json.Unmarshal(e.Object, status); err != nil {
			return "", nil, fmt.Errorf("watch sent an error that cannot be read: %w", err)
		}
		return "", nil, apierrors.FromObject(status)
	}
	if j.encoder.enc.Form.table() && e.List.Kind != "Table" {
		if e.List, err = j.encoder.list(e.Object); err != nil {
			return "", nil, err
		}
	}
	if len(e.List.Objects) != 1 {
		return "", nil, fmt.Errorf("watch sent an event of %d objects", len(e.List.Objects))
	}
	return watch.EventType(e.Type), observedJSON(&e.List.Objects[0]), nil
}
