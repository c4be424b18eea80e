// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"encoding/json"
	"fmt"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// column is one column of a type's table.
type column struct {
	name, kind, format, description string
	priority                        int32
	cell                            func(object) any
}

func defaultColumns() []column { return []column{nameColumn(), ageColumn()} }

func nameColumn() column {
	return column{
		name: "Name", kind: "string", format: "name", description: objectMetaDocs["name"],
		cell: func(o object) any { return text(metadataOf(o)["name"]) },
	}
}

func ageColumn() column {
	return column{
		name: "Age", kind: "string", description: objectMetaDocs["creationTimestamp"],
		cell: func(o object) any { return age(text(metadataOf(o)["creationTimestamp"])) },
	}
}

var objectMetaDocs = metav1.ObjectMeta{}.SwaggerDoc()

// cellOf returns a func that computes a cell of a table: the text that read returns.
func cellOf(read func(object) string) func(object) any {
	return func(o object) any { return read(o) }
}

func age(stamp string) string {
	var t metav1.Time
	if stamp == "" || t.UnmarshalQueryParameter(stamp) != nil {
		return "<unknown>"
	}
	return metatable.ConvertToHumanReadableDateType(t)
}

// customColumns returns the columns of a custom type's table: the name and the columns of
// definitions, or the name and the age if definitions is empty.
func customColumns(definitions []apiextensionsv1.CustomResourceColumnDefinition) ([]column, error) {
	if len(definitions) == 0 {
		creation := column{
			name: "Age", kind: "date",
			description: "Custom resource definition column (in JSONPath format): .metadata.creationTimestamp",
			cell:        func(o object) any { return age(text(metadataOf(o)["creationTimestamp"])) },
		}
		creation.description = objectMetaDocs["creationTimestamp"]
		return []column{nameColumn(), creation}, nil
	}
	columns := []column{nameColumn()}
	for _, d := range definitions {
		path := jsonpath.New(d.Name)
		path.AllowMissingKeys(true)
		if err := path.Parse("{" + d.JSONPath + "}"); err != nil {
			return nil, fmt.Errorf("unrecognized column definition %q: %w", d.JSONPath, err)
		}
		description := "Custom resource definition column (in JSONPath format): " + d.JSONPath
		if d.Description != "" {
			description = d.Description
		}
		columns = append(columns, column{
			name: d.Name, kind: d.Type, format: d.Format, description: description, priority: d.Priority,
			cell: func(o object) any { return customCell(path, d.Type, o) },
		})
	}
	return columns, nil
}

// customCell returns the result of one JSON path, in the type of its column; nil without a result of this type.
func customCell(path *jsonpath.JSONPath, kind string, o object) any {
	found, err := path.FindResults(o)
	if err != nil || len(found) == 0 || len(found[0]) == 0 {
		return nil
	}
	value := found[0][0].Interface()
	switch kind {
	case "integer":
		return integerCell(value)
	case "number":
		return numberCell(value)
	case "boolean":
		if v, ok := value.(bool); ok {
			return v
		}
	case "date":
		if v, ok := value.(string); ok {
			return age(v)
		}
	default:
		if v, ok := value.(string); ok {
			return v
		}
		if data, err := json.Marshal(value); err == nil {
			return string(data)
		}
	}
	return nil
}

func integerCell(value any) any {
	switch v := value.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
	}
	return nil
}

func numberCell(value any) any {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return nil
}

// table returns items as a table, as kubectl prints them.
func (r *resource) table(items []*item, revision uint64, next string, c *call) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(revision, 10), Continue: next},
		Rows:     []metav1.TableRow{},
	}
	for _, column := range r.columns {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: column.name, Type: column.kind, Format: column.format, Description: column.description, Priority: column.priority,
		})
	}
	for _, it := range items {
		row := metav1.TableRow{}
		for _, column := range r.columns {
			row.Cells = append(row.Cells, column.cell(it.object))
		}
		switch c.query.Get("includeObject") {
		case "None":
		case "Object":
			row.Object = runtime.RawExtension{Object: &unstructured.Unstructured{Object: r.served(it.object)}}
		default:
			row.Object = runtime.RawExtension{Object: &unstructured.Unstructured{Object: partial(it.object)}}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
