// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestActions(t *testing.T) {
	for _, test := range []struct {
		name  string
		facts facts
		want  action
	}{
		{"a refused object with a downstream object of ours", facts{refused: true, hasOrigin: true, hasDownstream: true, relation: copied}, actRefuse},
		{"a refused object that is being deleted", facts{refused: true, hasOrigin: true, deleting: true}, actRefuse},
		{"neither side has it", facts{}, actForget},
		{"only the downstream has it", facts{hasDownstream: true}, actRemoveOrphan},
		{"the origin is being deleted", facts{hasOrigin: true, deleting: true, hasDownstream: true, relation: copied}, actFinish},
		{"the origin is being deleted, and its place is another client's", facts{hasOrigin: true, deleting: true, hasDownstream: true, relation: foreign}, actFinish},
		{"the origin was replaced by one of its name", facts{hasOrigin: true, hasDownstream: true, relation: preceded}, actReplace},
		{"another client has the place", facts{hasOrigin: true, hasDownstream: true, relation: foreign}, actReportTaken},
		{"another origin has the place", facts{hasOrigin: true, hasDownstream: true, relation: misplaced}, actReportTaken},
		{"the marks of the downstream object are lost", facts{hasOrigin: true, hasDownstream: true, relation: unknown}, actReportTaken},
		{"a finished Job whose downstream object is gone", facts{hasOrigin: true, finished: true}, actLeave},
		{"a finished Job with its downstream object", facts{hasOrigin: true, finished: true, hasDownstream: true, relation: copied}, actSync},
		{"another client deleted the downstream object", facts{hasOrigin: true, vanished: true}, actFollow},
		{"it was deleted, and another object has its place", facts{hasOrigin: true, vanished: true, hasDownstream: true, relation: foreign}, actReportTaken},
		{"a new object", facts{hasOrigin: true}, actSync},
		{"an object in place", facts{hasOrigin: true, hasDownstream: true, relation: copied}, actSync},
	} {
		t.Run(test.name, func(t *testing.T) { require.Equal(t, test.want, test.facts.action()) })
	}
}

// For each combination of facts, the method action returns an action that deletes or writes only if the facts allow
// it.
func TestActionsOfAllFacts(t *testing.T) {
	bits := func(n, i int) bool { return n>>i&1 == 1 }
	for n := range 1 << 6 {
		for _, is := range []relation{foreign, copied, preceded, misplaced, unknown} {
			f := facts{bits(n, 0), bits(n, 1), bits(n, 2), bits(n, 3), bits(n, 4), is, bits(n, 5)}
			does := f.action()
			say := fmt.Sprintf("%+v", f)
			require.Equal(t, f.refused, does == actRefuse, say)
			switch does {
			case actSync, actFollow, actLeave, actReplace, actReportTaken, actFinish:
				require.True(t, f.hasOrigin, say)
			case actForget, actRemoveOrphan:
				require.False(t, f.hasOrigin, say)
			case actRefuse:
			}
			if does == actSync || does == actFollow {
				require.False(t, f.deleting, say)
				require.True(t, !f.hasDownstream || f.relation == copied, say)
			}
			if does == actFollow {
				require.True(t, f.vanished && !f.hasDownstream && !f.finished, say)
			}
			if does == actReplace {
				require.Equal(t, preceded, f.relation, say)
			}
		}
	}
}

func TestSpecPlans(t *testing.T) {
	want := &desired{Unstructured: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}, hash: "new"}
	want.SetName("a")
	want.SetAnnotations(map[string]string{appliedAnnotation: "new"})
	downstream := func(version, hash string, applied map[string]any) *unstructured.Unstructured {
		d := want.DeepCopy()
		d.SetUID("d")
		d.SetResourceVersion(version)
		d.SetAnnotations(map[string]string{appliedAnnotation: hash})
		if applied != nil {
			setManagedFields(t, d, manager, applied)
		}
		return d
	}
	ours := map[string]any{"metadata": map[string]any{"annotations": map[string]any{appliedAnnotation: ""}}}
	deleting := downstream("5", "new", ours)
	deleting.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	for _, test := range []struct {
		name      string
		writes    func() writes
		d         *unstructured.Unstructured
		returning bool
		want      specPlan
	}{
		{name: "nothing is downstream", want: specPlan{action: specCreate}},
		{name: "nothing may be started before leftovers are removed", returning: true, want: specPlan{action: specWait, wait: cacheDelay}},
		{name: "it is being deleted", d: deleting, want: specPlan{action: specWait}},
		{name: "it has the desired spec", d: downstream("5", "new", ours), want: specPlan{action: specInPlace, proven: true}},
		{name: "it has an older spec of ours", d: downstream("5", "old", ours), want: specPlan{action: specUpdate}},
		{name: "another client wrote the annotation of the hash", d: downstream("5", "old", nil), want: specPlan{action: specUpdate, drift: true}},
		{name: "another client took fields over", d: downstream("5", "new", nil), want: specPlan{action: specUpdate, drift: true}},
		{
			name: "the server stores our last write otherwise", d: downstream("5", "new", nil),
			writes: func() writes { return writes{spec: newPending("new", "4", "5")} },
			want:   specPlan{action: specInPlace},
		},
		{
			name: "the cache does not show our create yet", writes: func() writes { return writes{spec: newPending("new", "", "5")} },
			want: specPlan{action: specWait, wait: cacheDelay},
		},
		{
			name: "the cache does not show our update yet", d: downstream("4", "old", ours),
			writes: func() writes { return writes{spec: newPending("new", "4", "5")} },
			want:   specPlan{action: specWait, wait: cacheDelay},
		},
		{
			name: "the cache does not show our deletion yet", d: downstream("4", "old", ours),
			writes: func() writes { return writes{spec: newPending(deletionPrefix+"d", "4", "")} },
			want:   specPlan{action: specWait, wait: cacheDelay},
		},
		{
			name: "the server rejected it", d: downstream("4", "old", ours),
			writes: func() writes {
				return writes{rejected: rejection{hash: "new", state: "4", until: time.Now().Add(time.Minute)}}
			},
			want: specPlan{action: specWait, wait: time.Minute},
		},
		{
			name: "the server rejected it before the downstream object changed", d: downstream("5", "old", ours),
			writes: func() writes {
				return writes{rejected: rejection{hash: "new", state: "4", until: time.Now().Add(time.Minute)}}
			},
			want: specPlan{action: specUpdate},
		},
		{
			name: "it was left to another client", d: downstream("5", "old", ours),
			writes: func() writes {
				return writes{rejected: rejection{hash: "new", state: anyState, until: time.Now().Add(time.Minute)}}
			},
			want: specPlan{action: specWait, wait: time.Minute},
		},
		{
			name: "the server rejected another spec", d: downstream("4", "old", ours),
			writes: func() writes {
				return writes{rejected: rejection{hash: "other", state: "4", until: time.Now().Add(time.Minute)}}
			},
			want: specPlan{action: specUpdate},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := writes{}
				if test.writes != nil {
					w = test.writes()
				}
				require.Equal(t, test.want, planSpec(w, test.d, want, test.returning))
			})
		})
	}
}
