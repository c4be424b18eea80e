// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// Type is a compiled declaration. Use Compile or Builtin. It is immutable and safe for concurrent use.
type Type struct {
	spec v1alpha1.WorkloadTypeSpec

	replicas    path
	templates   []path
	selector    path
	references  []reference
	scaleTarget path
	podSelector path

	pods, ready, available, generation, health []string
	folded                                     []Field
}

type reference struct {
	path     path
	resource schema.GroupVersionResource
}

// Field is a field of the status that is computed from the same field of the shards.
type Field struct {
	// Path has the names of the fields, the first is status.
	Path []string
	v1alpha1.FoldedField
}

// Spec returns the declaration with its defaults.
func (t *Type) Spec() v1alpha1.WorkloadTypeSpec { return *t.spec.DeepCopy() }

// Resource returns the type in the version of the declaration.
func (t *Type) Resource() schema.GroupVersionResource {
	r := t.spec.Resource
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// GroupKind returns the kind of the type.
func (t *Type) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: t.spec.Resource.Group, Kind: t.spec.Resource.Kind}
}

// Division returns how the splitter divides an object of the type.
func (t *Type) Division() v1alpha1.WorkloadDivision { return t.spec.Division }

// Replicas returns the names of the field with the desired replicas; nil if the type has none.
func (t *Type) Replicas() []string { return t.replicas.names() }

// UnreadyFirst reports whether the type's controller removes unready replicas first.
func (t *Type) UnreadyFirst() bool { return t.spec.ScaleDown == v1alpha1.ScaleDownUnreadyFirst }

// Pods returns the names of the field with the number of pods that exist; nil if the type has no such field.
func (t *Type) Pods() []string { return slices.Clone(t.pods) }

// Ready returns the names of the field with the number of ready pods; nil if the type has no such field.
func (t *Type) Ready() []string { return slices.Clone(t.ready) }

// Available returns the names of the field with the number of available pods; nil if the type has no such field.
func (t *Type) Available() []string { return slices.Clone(t.available) }

// ObservedGeneration returns the names of the field with the observed generation; nil if the type has no such field.
func (t *Type) ObservedGeneration() []string { return slices.Clone(t.generation) }

// Fields returns the fields of the status that are computed from those of the shards.
func (t *Type) Fields() []Field { return slices.Clone(t.folded) }

// Adds reports whether the splitter adds the condition to the status.
func (t *Type) Adds(condition v1alpha1.AddedCondition) bool {
	return slices.Contains(t.spec.Status.Add, condition)
}

// Healthy reports whether an object is healthy by the rule of the declaration. known is false if there is no rule.
func (t *Type) Healthy(obj *unstructured.Unstructured) (healthy, known bool) {
	rule := t.spec.Status.Health
	switch {
	case rule == nil:
		return false, false
	case obj == nil:
		return false, true
	case t.health != nil:
		text, _, _ := unstructured.NestedString(obj.Object, t.health...)
		return slices.Contains(rule.Values, text), true
	}
	return Condition(obj, rule.Condition)["status"] == "True", true
}

// Condition returns the condition of an object whose type is of; nil if the object lacks it. The caller must not modify it.
func Condition(obj *unstructured.Unstructured, of string) map[string]any {
	if obj == nil {
		return nil
	}
	v, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	list, _ := v.([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == of {
			return c
		}
	}
	return nil
}

// Roots returns the first two names of each path of the templates, the selectors, the references and the scale target: for
// spec.template it has template under the key spec. A cache that serves only these needs no other field but the metadata.
func (t *Type) Roots() map[string][]string {
	roots := map[string][]string{}
	add := func(p path) {
		if len(p) >= 2 && !slices.Contains(roots[p[0].name], p[1].name) {
			roots[p[0].name] = append(roots[p[0].name], p[1].name)
		}
	}
	for _, p := range t.templates {
		add(p)
	}
	for _, r := range t.references {
		add(r.path)
	}
	add(t.selector)
	add(t.scaleTarget)
	add(t.podSelector)
	return roots
}

// Templates returns the pod templates of an object. The caller must not modify them.
func (t *Type) Templates(obj *unstructured.Unstructured) (all []map[string]any) {
	for _, p := range t.templates {
		p.visit(obj.Object, func(v any) {
			if template, ok := v.(map[string]any); ok {
				all = append(all, template)
			}
		})
	}
	return all
}

// TemplatePaths returns the names of those template fields that are not in lists.
func (t *Type) TemplatePaths() (all [][]string) {
	for _, p := range t.templates {
		if !p.hasEach() {
			all = append(all, p.names())
		}
	}
	return all
}

// PodLabels returns the labels of each kind of pods of an object: one map for each template with labels. Without such a
// template, it returns the labels that the selector of the object requires.
func (t *Type) PodLabels(obj *unstructured.Unstructured) (all []map[string]string) {
	for _, template := range t.Templates(obj) {
		if pods, _, _ := unstructured.NestedStringMap(template, "metadata", "labels"); len(pods) > 0 {
			all = append(all, pods)
		}
	}
	if all != nil || t.selector == nil {
		return all
	}
	t.selector.visit(obj.Object, func(v any) {
		required, _ := v.(map[string]any)
		if inner, ok := required["matchLabels"].(map[string]any); ok {
			required = inner
		}
		pods := map[string]string{}
		for name, v := range required {
			if text, ok := v.(string); ok {
				pods[name] = text
			}
		}
		if len(pods) > 0 {
			all = append(all, pods)
		}
	})
	return all
}

// References calls f for each object to which the declared references of obj lead, with its resource, in the form
// RESOURCE.GROUP (RESOURCE for the core group), and its name. References in the pod templates are not among them.
func (t *Type) References(obj *unstructured.Unstructured, f func(resource, name string)) {
	for _, r := range t.references {
		r.path.visit(obj.Object, func(v any) {
			if name, ok := v.(string); ok && name != "" {
				f(r.resource.GroupResource().String(), name)
			}
		})
	}
}

// Referenced returns the types outside of the core group to which the declared references lead, without duplicates.
func (t *Type) Referenced() (all []schema.GroupVersionResource) {
	for _, r := range t.references {
		if r.resource.Group != "" && !slices.ContainsFunc(all, func(o schema.GroupVersionResource) bool { return o.GroupResource() == r.resource.GroupResource() }) {
			all = append(all, r.resource)
		}
	}
	return all
}

// SelectsPods reports whether objects of the type follow the workloads whose pods they select.
func (t *Type) SelectsPods() bool { return t.podSelector != nil }

// PodSelector returns the selector of pods in an object of the type, as the content of a LabelSelector; nil if the object
// has no selector. An empty selector selects all pods of the namespace. The caller must not modify it.
func (t *Type) PodSelector(obj *unstructured.Unstructured) (selector map[string]any) {
	if t.podSelector == nil || obj == nil {
		return nil
	}
	t.podSelector.visit(obj.Object, func(v any) {
		selector, _ = v.(map[string]any)
		_, byLabels := selector["matchLabels"]
		_, byExpressions := selector["matchExpressions"]
		if !byLabels && !byExpressions && len(selector) > 0 {
			selector = map[string]any{"matchLabels": selector}
		}
	})
	return selector
}

// Scales reports whether objects of the type scale workloads.
func (t *Type) Scales() bool { return t.scaleTarget != nil }

// ScaleTarget returns the kind and the name of the object that obj scales, in the namespace of obj. It returns false if
// obj has no complete reference to one.
func (t *Type) ScaleTarget(obj *unstructured.Unstructured) (kind schema.GroupKind, name string, ok bool) {
	if t.scaleTarget == nil || obj == nil {
		return schema.GroupKind{}, "", false
	}
	t.scaleTarget.visit(obj.Object, func(v any) {
		ref, _ := v.(map[string]any)
		name, _ = ref["name"].(string)
		text, hasVersion := ref["apiVersion"].(string)
		of, hasKind := ref["kind"].(string)
		if !hasVersion || text == "" {
			text = t.spec.ScaleTarget.APIVersion
		}
		if !hasKind || of == "" {
			of = t.spec.ScaleTarget.Kind
		}
		version, err := schema.ParseGroupVersion(text)
		kind, ok = schema.GroupKind{Group: version.Group, Kind: of}, err == nil && of != "" && name != ""
	})
	return kind, name, ok
}
