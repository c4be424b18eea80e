// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"bytes"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// row reads the table of one object.
func (a *API) row(ctx context.Context, q query, enc Encoding, o *unstructured.Unstructured) ([]byte, error) {
	name, _, _ := splitName(o.GetName())
	k, ok := RegionOf(o)
	q.only = &k
	sources := a.sources(q, a.set.Members())
	switch {
	case !ok || len(sources) == 0:
		return nil, apierrors.NewNotFound(q.types[0].GroupResource(), o.GetName())
	case !enc.Form.table() || sources[0].raw == nil:
		return nil, notAcceptable(&sources[0])
	}
	var rows [][]byte
	e := a.encoder(q, enc, func(object []byte) error {
		rows = append(rows, bytes.Clone(object))
		return nil
	})
	p, err := a.rowPage(ctx, &sources[0], e, name)
	if err != nil {
		return nil, wrap(k, err)
	}
	defer p.release()
	if err := e.page(&sources[0], p); err != nil {
		return nil, err
	}
	table, err := e.rowTable(o.GetResourceVersion(), bytes.Join(rows, []byte{','}))
	if err != nil {
		return nil, err
	}
	return table.Raw, nil
}

// rowPage asks s for the table of the object with the given name.
func (a *API) rowPage(ctx context.Context, s *source, e *encoder, name string) (*page, error) {
	held, err := a.hold(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	tried, attempt := newAttempt(held.metered(ctx), a.opts.Answer, nil)
	p, err := a.readJSON(tried, s, e, name, metav1.ListOptions{}, held)
	if err = held.failed(attempt.end(err)); err != nil {
		p.release()
		held.release()
		return nil, err
	}
	held.releaseUnused()
	return p, nil
}
