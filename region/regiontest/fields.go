// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"reflect"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fieldManager tracks field ownership and merges applied fields.
type fieldManager = *managedfields.FieldManager

// fieldManager returns the field manager of a subresource of r, or of the main resource if subresource is "". It
// creates the manager when it is first needed.
func (r *resource) fieldManager(subresource string) (fieldManager, error) {
	m := &r.managers
	m.Lock()
	defer m.Unlock()
	if found := m.bySubresource[subresource]; found != nil {
		return found, nil
	}
	converter, err := r.typeConverter()
	if err != nil {
		return nil, err
	}
	made, err := managedfields.NewDefaultCRDFieldManager(converter, versions{}, defaulter{r}, creator{}, r.gvk(), r.gv(), subresource,
		fieldpath.NewExcludeFilterSetMap(r.resetFields(subresource)))
	if err != nil {
		return nil, err
	}
	if m.bySubresource == nil {
		m.bySubresource = map[string]fieldManager{}
	}
	m.bySubresource[subresource] = made
	return made, nil
}

func (r *resource) typeConverter() (managedfields.TypeConverter, error) {
	switch t := r.rules.(type) {
	case *custom:
		return t.typeConverter(r)
	case *typed:
		if r.group == "apiextensions.k8s.io" {
			return managedfields.NewDeducedTypeConverter(), nil // it treats lists as atomic, as almost all lists of a CRD are
		}
		return applyconfigurations.NewTypeConverter(t.scheme), nil
	default:
		return managedfields.NewDeducedTypeConverter(), nil
	}
}

// resetFields returns the fields that a write to the subresource cannot change, and hence cannot own.
func (r *resource) resetFields(subresource string) map[fieldpath.APIVersion]*fieldpath.Set {
	if !r.status {
		return nil
	}
	set := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	switch {
	case subresource == "status" && r.custom():
		set = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
	case subresource != "":
		set = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		if r.group == "apps" {
			set.Insert(fieldpath.MakePathOrDie("metadata", "labels"))
		}
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(r.gv().String()): set}
}

// manager returns the name of c's field manager: the query parameter fieldManager, or else the user agent up to its
// first slash.
func (c *call) manager() string {
	if c.FieldManager != "" {
		return c.FieldManager
	}
	name, _, _ := strings.Cut(c.http.UserAgent(), "/")
	var b strings.Builder
	for _, r := range name {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return "unknown"
	}
	return b.String()
}

// track returns next with managed fields that record the change from live to next by the request. The caller must not
// use live or next afterwards.
func (c *call) track(live, next object) (object, error) {
	manager, err := c.resource.fieldManager(c.Subresource)
	if err != nil {
		return nil, err
	}
	tracked, err := manager.Update(&unstructured.Unstructured{Object: live}, &unstructured.Unstructured{Object: next}, c.manager())
	if err != nil { // the object does not fit its schema; validation will report it
		delete(metadataOf(next), "managedFields")
		return next, nil
	}
	return contentOf(tracked, next), nil
}

func contentOf(o runtime.Object, otherwise object) object {
	if u, ok := o.(*unstructured.Unstructured); ok && u != nil {
		return u.Object
	}
	return otherwise
}

// empty returns an object of r without content.
func (r *resource) empty() object {
	return object{"apiVersion": r.gv().String(), "kind": r.kind}
}

// keepTimes copies the managed fields of old to o if o differs from old only in the times of its managed fields.
func keepTimes(o, old object) {
	m, before := metadataOf(o), metadataOf(old)
	fields, ok := m["managedFields"].([]any)
	was, okBefore := before["managedFields"].([]any)
	if !ok || !okBefore || !sameFields(fields, was) {
		return
	}
	a, b := withoutMetadata(o, false), withoutMetadata(old, false)
	a["metadata"], b["metadata"] = withoutFields(m), withoutFields(before)
	if reflect.DeepEqual(a, b) {
		m["managedFields"] = was
	}
}

func sameFields(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !reflect.DeepEqual(without(a[i], "time"), without(b[i], "time")) {
			return false
		}
	}
	return true
}

func withoutFields(m map[string]any) any { return without(m, "managedFields") }

func without(v any, name string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	rest := make(map[string]any, len(m))
	for k, v := range m {
		if k != name {
			rest[k] = v
		}
	}
	return rest
}

// versions converts between the versions of a type, which differ only in their name.
type versions struct{}

func (versions) Convert(in, out, _ any) error {
	from, okIn := in.(*unstructured.Unstructured)
	to, okOut := out.(*unstructured.Unstructured)
	if okIn && okOut {
		to.Object = from.DeepCopy().Object
	}
	return nil
}

func (versions) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	gvk, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{u.GroupVersionKind()})
	if !ok || gvk == u.GroupVersionKind() {
		return in, nil
	}
	u = u.DeepCopy()
	u.SetGroupVersionKind(gvk)
	return u, nil
}

func (versions) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// defaulter sets the defaults of custom types after a merge.
type defaulter struct{ r *resource }

func (d defaulter) Default(o runtime.Object) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		if t, ok := d.r.rules.(*custom); ok {
			t.fillDefaults(u.Object)
		}
	}
}

// creator creates empty objects.
type creator struct{}

func (creator) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}
