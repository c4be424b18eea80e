// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// precedence has what decides between two policies that select an object, the first difference first.
type precedence struct {
	wide     bool
	priority int32
	name     string
}

func (a precedence) before(b precedence) bool {
	switch {
	case a.wide != b.wide:
		return b.wide
	case a.priority != b.priority:
		return a.priority > b.priority
	}
	return a.name < b.name
}

func (a precedence) key() types.NamespacedName {
	if a.wide {
		return types.NamespacedName{Name: a.name}
	}
	return types.NamespacedName{Namespace: "default", Name: a.name}
}

// Policies appear and disappear in random order. The first one by precedence decides. So a policy that appears changes
// the decision only if it is the first, and one that disappears only if it decided.
func TestPrecedence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, err := newPolicies(nil)
		require.NoError(t, err)
		obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "default", "labels": map[string]any{"app": "web"}}}}
		present := map[types.NamespacedName]precedence{}
		decided := func() string {
			p, _, err := all.decides(obj, true)
			require.NoError(t, err)
			return p.name
		}
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			p := precedence{rapid.Bool().Draw(t, "wide"), rapid.Int32Range(-1, 1).Draw(t, "priority"), fmt.Sprint("p", rapid.IntRange(0, 2).Draw(t, "name"))}
			before := decided()
			_, there := present[p.key()]
			if there {
				delete(present, p.key())
				all.set(p.key(), nil)
			} else {
				present[p.key()] = p
				spec := v1alpha1.ClusterPlacementPolicySpec{PlacementPolicySpec: v1alpha1.PlacementPolicySpec{Priority: p.priority, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ClusterPlacementPolicy{Spec: spec})
				require.NoError(t, err)
				all.set(p.key(), &unstructured.Unstructured{Object: content})
			}
			var best precedence
			want := ""
			for _, q := range present {
				if want == "" || q.before(best) {
					best, want = q, placedBy(q.key())
				}
			}
			require.Equal(t, want, decided())
			if want != before {
				require.True(t, there && before == placedBy(p.key()) || !there && want == placedBy(p.key()))
			}
		}
	})
}
