// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package declarations

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// MaxTypes is the maximum number of WorkloadTypes in effect. Each costs a watch, and an installation needs few.
const MaxTypes = 64

// declaration is the judgement about one WorkloadType.
type declaration struct {
	// Name and Generation are those of the WorkloadType.
	Name       string
	Generation int64
	// InEffect is the spec in effect, and InEffectGeneration its generation. It is nil if no spec is in effect: none was
	// ever without a fault, this release rejects the last one, or MaxTypes others are in effect.
	InEffect           *v1alpha1.WorkloadTypeSpec
	InEffectGeneration int64
	// Err has the faults of the present spec; nil if it is in effect.
	Err error
}

// judge decides which specs of the WorkloadTypes are in effect. before has the result of the last call, by name: the last
// good spec of an object may not be in its status yet. refuse returns why a spec is rejected.
func judge(objects []*unstructured.Unstructured, before map[string]declaration, refuse func(v1alpha1.WorkloadTypeSpec) error) []declaration {
	objects = slices.SortedFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	var all []declaration
	effective := 0
	for _, obj := range objects {
		d := judgeOne(obj, before[obj.GetName()], refuse)
		if d.InEffect != nil {
			if effective++; effective > MaxTypes {
				d.InEffect, d.InEffectGeneration = nil, 0
				d.Err = fmt.Errorf("at most %d WorkloadTypes can be in effect: delete others", MaxTypes)
			}
		}
		all = append(all, d)
	}
	return all
}

func judgeOne(obj *unstructured.Unstructured, before declaration, refuse func(v1alpha1.WorkloadTypeSpec) error) declaration {
	d := declaration{Name: obj.GetName(), Generation: obj.GetGeneration()}
	var now v1alpha1.WorkloadType
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &now); err != nil {
		d.Err = err
	} else if d.Err = check(obj.GetName(), now.Spec, refuse); d.Err == nil {
		d.InEffect, d.InEffectGeneration = &now.Spec, d.Generation
		return d
	}
	// The last good spec stays, unless it is no longer good: another release may reject it.
	for _, last := range []declaration{before, {InEffect: now.Status.Accepted, InEffectGeneration: now.Status.AcceptedGeneration}} {
		if last.InEffect != nil && check(obj.GetName(), *last.InEffect, refuse) == nil {
			d.InEffect, d.InEffectGeneration = last.InEffect, last.InEffectGeneration
			return d
		}
	}
	return d
}

// check returns the faults of a spec.
func check(name string, spec v1alpha1.WorkloadTypeSpec, refuse func(v1alpha1.WorkloadTypeSpec) error) error {
	t, err := workload.Compile(spec)
	if err != nil {
		return err
	}
	if want := t.Resource().GroupResource().String(); name != want {
		return fmt.Errorf("metadata.name: is %q; accepted: %s", name, want)
	}
	return errors.Join(t.NotBuiltin(), refuse(spec))
}

// message returns the text of the condition Ready.
func (d declaration) message() string {
	if d.Err == nil {
		return "the declaration is in effect"
	}
	text := strings.ReplaceAll(d.Err.Error(), "\n", "; ")
	if d.InEffect != nil {
		return fmt.Sprintf("%s; the spec of generation %d stays in effect", text, d.InEffectGeneration)
	}
	return text
}
