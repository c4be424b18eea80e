// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/router/aggregate"
)

// listWriter writes a list page by page, so that it never holds the whole list. The metadata, which
// is complete only at the end, comes last.
type listWriter struct {
	w      http.ResponseWriter
	report *aggregate.Report
	begun  bool
	items  bool
}

func (l *listWriter) begin() error {
	if l.begun {
		return nil
	}
	l.begun = true
	warn(l.w, l.report)
	header(l.w, http.StatusOK)
	_, err := l.w.Write([]byte(`{"items":[`))
	return err
}

// page writes the objects of a page. An error means that the client has gone.
func (l *listWriter) page(p *unstructured.UnstructuredList) error {
	if err := l.begin(); err != nil {
		return err
	}
	for i := range p.Items {
		data, err := json.Marshal(p.Items[i].Object)
		if err != nil {
			return err
		}
		if l.items {
			data = append([]byte{','}, data...)
		}
		l.items = true
		if _, err := l.w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// end writes the rest of the list.
func (l *listWriter) end(list *unstructured.UnstructuredList) {
	head, err := json.Marshal(list.Object)
	if err != nil || l.begin() != nil || len(head) < 3 {
		panic(http.ErrAbortHandler)
	}
	_, _ = l.w.Write(append([]byte(`],`), head[1:]...)) // an error means that the client has gone
}
