// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// tableHead are the columns that API servers give to types without columns of their own.
const tableHead = `"columnDefinitions":[{"name":"Name","type":"string","format":"name","description":"","priority":0},` +
	`{"name":"Created At","type":"date","format":"","description":"","priority":0}]`

// tabulated returns the table of an answer that has objects in place of one: a list, or one object. Some aggregated API
// servers cannot make tables. The rows have whole objects, or their metadata.
func tabulated(answer []byte, whole bool) ([]byte, error) {
	list := struct {
		APIVersion, Kind string
		Metadata         json.RawMessage
		Items            []json.RawMessage
	}{}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	kind, isList := strings.CutSuffix(list.Kind, "List")
	if !isList {
		list.Items, list.Metadata = []json.RawMessage{answer}, nil
	}
	if list.Metadata == nil {
		list.Metadata = []byte("{}")
	}
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":%s,%s,"rows":[`, list.Metadata, tableHead)
	for i, item := range list.Items {
		row, err := rowOf(item, list.APIVersion, kind, whole)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text.WriteByte(',')
		}
		text.Write(row)
	}
	text.WriteString("]}")
	return []byte(text.String()), nil
}

// rowOf returns the row of an object. The objects of a list may lack their type.
func rowOf(object json.RawMessage, apiVersion, kind string, whole bool) ([]byte, error) {
	var fields map[string]json.RawMessage
	var head struct {
		Metadata struct{ Name, CreationTimestamp any }
	}
	err := json.Unmarshal(object, &fields)
	if err == nil {
		err = json.Unmarshal(object, &head)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("an object of the answer cannot be read: %w", err)
	case fields["metadata"] == nil:
		return nil, errors.New("an object of the answer has no metadata")
	}
	if !whole {
		fields = map[string]json.RawMessage{"metadata": fields["metadata"]}
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	for key, value := range map[string]string{"apiVersion": apiVersion, "kind": kind} {
		if _, ok := fields[key]; !ok {
			fields[key], _ = json.Marshal(value) // a string can be encoded
		}
	}
	return json.Marshal(map[string]any{"cells": []any{head.Metadata.Name, head.Metadata.CreationTimestamp}, "object": fields})
}
