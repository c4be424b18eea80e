// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// filter selects objects by labels, fields, namespace and name.
type filter struct {
	labels    labels.Selector
	fields    fields.Selector
	namespace string
	name      string
	readers   map[string]func(object) string
}

// filter parses the selectors of the query.
func (c *call) filter() (*filter, error) {
	f := &filter{namespace: c.Namespace, name: c.Name, readers: c.resource.fields}
	var err error
	if f.labels, err = labels.Parse(c.query.Get("labelSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if f.fields, err = fields.ParseSelector(c.query.Get("fieldSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range f.fields.Requirements() {
		_, known := f.readers[r.Field]
		if !known && r.Field != "metadata.name" && (r.Field != "metadata.namespace" || !c.resource.namespaced) {
			return nil, apierrors.NewBadRequest(unknownField(c.resource, r.Field))
		}
	}
	if c.query.Get("fieldSelector") != "" && c.Name != "" && c.Verb == "watch" {
		if name, ok := f.fields.RequiresExactMatch("metadata.name"); ok && name != c.Name {
			return nil, apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
	}
	return f, nil
}

func unknownField(r *resource, name string) string {
	if r.custom() {
		return fmt.Sprintf("field label not supported: %s", name)
	}
	switch r.kind {
	case "Pod", "Event", "Namespace", "Secret", "Service", "Job":
		return fmt.Sprintf("field label not supported: %s", name)
	default:
		return fmt.Sprintf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", name)
	}
}

func (f *filter) everything() bool { return f.labels.Empty() && f.fields.Empty() && f.name == "" }

func (f *filter) matches(it *item) bool {
	if it == nil || (f.namespace != "" && it.key.namespace != f.namespace) || (f.name != "" && it.key.name != f.name) {
		return false
	}
	if !f.fields.Empty() {
		set := fields.Set{"metadata.name": it.key.name, "metadata.namespace": it.key.namespace}
		for name, read := range f.readers {
			set[name] = read(it.object)
		}
		if !f.fields.Matches(set) {
			return false
		}
	}
	return f.labels.Empty() || f.labels.Matches(itemLabels{it})
}

// itemLabels reads labels without copying them.
type itemLabels struct{ it *item }

func (l itemLabels) all() map[string]any {
	m, _ := l.it.object["metadata"].(map[string]any)
	set, _ := m["labels"].(map[string]any)
	return set
}

func (l itemLabels) Has(label string) bool   { _, ok := l.all()[label]; return ok }
func (l itemLabels) Get(label string) string { return text(l.all()[label]) }

func (l itemLabels) Lookup(label string) (string, bool) {
	v, ok := l.all()[label]
	return text(v), ok
}
