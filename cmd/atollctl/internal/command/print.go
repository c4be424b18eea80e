// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
)

var formats = []string{formatTable, formatWide, formatJSON, formatYAML, formatName}

func checkFormat(format string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	return badInput("use one of "+strings.Join(formats, ", "), "--output %q is not known", format)
}

// group is the API group and version of objects that exist only in this command's output.
const group = "atollctl.atoll.dev/v1alpha1"

// listing is the result of a command. For each item it has a row for people and an object for
// programs.
type listing struct {
	columns []string
	wide    []string // further columns of the format wide, which follow the columns
	items   []item
	single  bool // print the object itself, not a list of one
}

type item struct {
	cells  []any
	object *unstructured.Unstructured
}

// object returns an output object for an item that is no object in a peer.
func object(kind, name string, fields map[string]any) *unstructured.Unstructured {
	content := map[string]any{"apiVersion": group, "kind": kind, "metadata": map[string]any{"name": name}}
	for field, value := range fields {
		if value != nil && value != "" {
			content[field] = value
		}
	}
	return &unstructured.Unstructured{Object: content}
}

func (s *session) print(l listing) error {
	switch s.output {
	case formatJSON:
		return l.objects(s.out, &printers.JSONPrinter{})
	case formatYAML:
		return l.objects(s.out, &printers.YAMLPrinter{})
	case formatName:
		names := &printers.NamePrinter{}
		for _, it := range l.items {
			if err := names.PrintObj(it.object, s.out); err != nil {
				return err
			}
		}
		return nil
	default:
		return l.table(s.out, s.wide)
	}
}

func (l listing) objects(out io.Writer, p printers.ResourcePrinter) error {
	if l.single && len(l.items) == 1 {
		return p.PrintObj(l.items[0].object, out)
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}}
	for _, it := range l.items {
		list.Items = append(list.Items, *it.object)
	}
	return p.PrintObj(list, out)
}

func (l listing) table(out io.Writer, wide bool) error {
	table := &metav1.Table{}
	for i, name := range slices.Concat(l.columns, l.wide) {
		column := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if i >= len(l.columns) {
			column.Priority = 1 // only in the format wide
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, column)
	}
	for _, it := range l.items {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: it.cells, Object: runtime.RawExtension{Object: it.object}})
	}
	return printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(table, out)
}

// or returns value, or "-" if value is empty.
func or(value string) string {
	if value == "" {
		return "-"
	}
	return value
}
