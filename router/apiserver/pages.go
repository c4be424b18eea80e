// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// listWriter writes a list object by object, so that it never holds the whole list. The metadata, which is complete only
// at the end, comes last.
type listWriter struct {
	body
	key   string // of the objects: items or rows
	items bool
}

// object writes an object. An error means that the client has gone.
func (l *listWriter) object(data []byte) error {
	before := ","
	if !l.items {
		before = `{"` + l.key + `":[`
	}
	l.items = true
	if _, err := io.WriteString(&l.body, before); err != nil {
		return err
	}
	_, err := l.Write(data)
	return err
}

// finish writes the rest of the list.
func (l *listWriter) finish(list *unstructured.UnstructuredList) error {
	if !l.items {
		list.Object[l.key] = []any{}
	}
	head, err := json.Marshal(list.Object)
	if err != nil {
		return err
	}
	if l.items {
		head[0] = ','
		head = append([]byte{']'}, head...)
	}
	_, _ = l.Write(head) // an error means that the client has gone
	l.end()
	return nil
}
