// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestRulings(t *testing.T) {
	from, lost := provenance{uid: "one"}, provenance{lostUID: true}
	selected := originState{uid: "one", selected: true, placed: true}
	for _, test := range []struct {
		name         string
		from         provenance
		origin       originState
		cached, live ruling
	}{
		{"the origin is missing", from, originState{}, rulingUndecided, holdMissing},
		{"the origin is missing and its mark is lost", lost, originState{}, rulingUndecided, holdMissingChanged},
		{"the origin is selected", from, selected, rulingStale, rulingStale},
		{"the origin is selected, and its downstream object belongs elsewhere", from, originState{uid: "one", selected: true}, rulingRemove, rulingStale},
		{"the origin is being deleted", from, originState{uid: "one", selected: true, deleting: true, placed: true}, rulingRemove, rulingRemove},
		{"the origin is no longer selected and has our finalizer", from, originState{uid: "one", finalizer: true}, rulingRemove, rulingRemove},
		{"the origin is not selected and never had our finalizer", from, originState{uid: "one"}, rulingRemove, holdUnselected},
		{"another object of its name is selected", from, originState{uid: "two", selected: true, placed: true}, rulingUndecided, rulingTakeOver},
		{"another object of its name is being deleted", from, originState{uid: "two", selected: true, deleting: true}, rulingUndecided, holdReplaced},
		{"another object of its name is not selected", from, originState{uid: "two", finalizer: true}, rulingUndecided, holdReplaced},
		{"its mark is lost, and the object of its name has our finalizer", lost, originState{uid: "two", selected: true, finalizer: true, placed: true}, rulingStale, rulingStale},
		{"its mark is lost, and the object of its name has no finalizer", lost, originState{uid: "two", selected: true, deleting: true}, rulingUndecided, rulingRemove},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.cached, ruleCached(test.from, test.origin), "by the cache")
			live := test.origin
			live.placed = false
			require.Equal(t, test.live, ruleLive(test.from, live), "live")
		})
	}
}

// For each state of the origin, ruleLive allows the deletion of the downstream object only on evidence: the origin is
// being deleted, or it is no longer selected and has our finalizer.
func TestRulingsOfAllOrigins(t *testing.T) {
	for n := range 1 << 5 {
		origin := originState{uid: "one", selected: n&1 > 0, deleting: n&2 > 0, finalizer: n&4 > 0}
		if n&8 > 0 {
			origin.uid = "two"
		}
		from := provenance{uid: "one", lostUID: n&16 > 0}
		say := fmt.Sprintf("%+v %+v", from, origin)
		is := ruleLive(from, origin)
		if is == rulingRemove {
			require.True(t, origin.uid == "one" || from.lostUID, say)
			require.True(t, origin.finalizer || origin.selected && origin.deleting, say)
			require.False(t, origin.selected && !origin.deleting, say)
		}
		if is == rulingTakeOver {
			require.True(t, origin.selected && !origin.deleting && !from.lostUID, say)
		}
		require.NotEqual(t, rulingUndecided, is, say)
		if is >= holdMissing {
			fact, keep := heldBecause(is, types.NamespacedName{Namespace: "a", Name: "b"}, from.uid, origin.uid)
			require.Contains(t, fact, "a/b")
			require.Contains(t, keep, "upstream")
		}
	}
}
