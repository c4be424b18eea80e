// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// holding is the state of a name for its users: free (the zero value), or held by the
// object that an operation added, with some content.
type holding struct{ op, equal, digest string }

// model is a name that each operation changes at one point in time. An operation of unknown
// result may have happened or not.
var model = porcupine.NondeterministicModel{
	Init: func() []any { return []any{holding{}} },
	Step: func(state, input, _ any) []any {
		var next []any
		for _, s := range input.(*deed).steps(state.(holding)) {
			next = append(next, s)
		}
		return next
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, _ any) string {
		return input.(*deed).String()
	},
}

// steps returns the states to which d may lead from s. It returns none if d cannot have ended with
// its result in s.
func (d *deed) steps(s holding) []holding {
	free := s == holding{}
	only := func(ok bool, next holding) []holding {
		if !ok {
			return nil
		}
		return []holding{next}
	}
	added := holding{d.id, d.equal, d.digest}
	updated := holding{s.op, d.equal, d.digest}
	switch {
	case d.action == lookup:
		return only(free, s)
	case d.action == plainDelete && d.ending == Done:
		return []holding{{}}
	case d.action == plainDelete && d.ending == Running:
		return []holding{s, {}}
	case d.action == plainDelete:
		return []holding{s}
	case d.action == Move:
		return []holding{s}
	case d.action == absence:
		return only(s.op != d.id, s)
	case d.ending == AlreadyDone:
		return only(s.equal == d.equal, s)
	case d.ending == Aborted && d.reason == HeldByOther && d.action == Add:
		return only(!free, s)
	case d.ending == Aborted && d.reason == Missing:
		return only(free, s)
	case d.ending == Aborted:
		return []holding{s}
	}
	unsure := d.ending != Done && d.ending != Committed
	switch {
	case d.action == Add && unsure && free:
		return []holding{s, added}
	case d.action == Add && free:
		return []holding{added}
	case d.action == Update && unsure && !free:
		return []holding{s, updated}
	case d.action == Update && !free:
		return []holding{updated}
	case d.action == Remove && unsure:
		return []holding{s, {}}
	case d.action == Remove && !free:
		return []holding{{}}
	}
	return only(unsure, s)
}

func (d *deed) String() string {
	return strings.TrimSpace(fmt.Sprintf("[%d %d] %s %s: %s %s", d.call, d.end, d.action, d.id, d.ending, d.reason))
}

// check checks that the results that the callers got are possible in some sequential order. If an
// operation overlapped with another one or with its late requests, check drops the reason of an
// abort, and does not require that a removal found the object.
func (h *history) check() string {
	var ops []porcupine.Operation
	for i, d := range h.deeds {
		d := *d
		met := h.others || slices.ContainsFunc(h.deeds, func(e *deed) bool {
			return e != h.deeds[i] && e.action != lookup && e.action != absence && e.call <= d.end && e.gone >= d.call
		})
		if met && d.ending == Aborted {
			d.reason = ""
		}
		if met && d.action == Remove && d.ending != Aborted {
			// The removal may have joined another one that was under way.
			d.ending = Ended
		}
		ops = append(ops, porcupine.Operation{ClientId: i, Input: &d, Call: d.call, Output: nil, Return: d.end})
	}
	switch porcupine.CheckOperationsTimeout(model.ToModel(), ops, time.Minute) {
	case porcupine.Ok:
		return ""
	case porcupine.Unknown:
		return "history: the check took too long"
	}
	var b strings.Builder
	for _, d := range h.deeds {
		fmt.Fprintf(&b, "; %s", d)
	}
	return "history: nothing in one order explains it" + b.String()
}

func TestHistoryModel(t *testing.T) {
	add := func(id string, e Ending, r Reason, call, end int64) *deed {
		return &deed{id: id, action: Add, equal: id, digest: id, ending: e, reason: r, call: call, end: end, gone: end}
	}
	remove := func(id string, call, end int64) *deed {
		return &deed{id: id, action: Remove, ending: Done, call: call, end: end, gone: end}
	}
	free := func(at int64) *deed { return &deed{action: lookup, ending: Done, call: at, end: at, gone: at} }
	for name, c := range map[string]struct {
		deeds []*deed
		ok    bool
	}{
		"an add":                                    {[]*deed{free(1), add("x", Done, "", 2, 3)}, true},
		"two owners":                                {[]*deed{add("x", Done, "", 1, 2), add("y", Done, "", 3, 4)}, false},
		"two owners at once":                        {[]*deed{add("x", Done, "", 1, 3), add("y", Done, "", 2, 4)}, false},
		"two owners with a removal between":         {[]*deed{add("x", Done, "", 1, 2), remove("r", 3, 4), add("y", Done, "", 5, 6)}, true},
		"free while it is held":                     {[]*deed{add("x", Done, "", 1, 2), free(3)}, false},
		"free while it is added":                    {[]*deed{add("x", Done, "", 1, 3), free(2)}, true},
		"free while it is removed":                  {[]*deed{add("x", Done, "", 1, 2), remove("r", 3, 5), free(4)}, true},
		"held by nobody":                            {[]*deed{add("x", Aborted, HeldByOther, 1, 2)}, false},
		"held by a rival":                           {[]*deed{add("x", Aborted, HeldByOther, 1, 3), add("y", Aborted, "", 2, 4)}, true},
		"held by an earlier one":                    {[]*deed{add("x", Done, "", 1, 2), add("y", Aborted, HeldByOther, 3, 4)}, true},
		"in doubt, then held":                       {[]*deed{{id: "x", action: Add, call: 1, end: 9, gone: 9}, add("y", Aborted, HeldByOther, 3, 4)}, true},
		"in doubt, then free":                       {[]*deed{{id: "x", action: Add, call: 1, end: 9, gone: 9}, free(3)}, true},
		"already done by nobody":                    {[]*deed{add("x", AlreadyDone, "", 1, 2)}, false},
		"ended, and in effect after":                {[]*deed{add("x", Ended, "", 1, 2), {id: "x", action: absence, call: 3, end: 3, gone: 3}, add("y", Done, "", 4, 5)}, true},
		"ended, in effect, found, and then removed": {[]*deed{add("x", Ended, "", 1, 5), {id: "y", action: Add, equal: "x", ending: AlreadyDone, call: 2, end: 3, gone: 3}, remove("r", 2, 4)}, true},
		"a delete in effect or not, and another":    {[]*deed{add("x", Done, "", 1, 2), {action: plainDelete, call: 3, end: 9, gone: 9}, add("y", Done, "", 4, 5)}, true},
		"a delete without effect, and another":      {[]*deed{add("x", Done, "", 1, 2), {action: plainDelete, ending: Aborted, call: 3, end: 9, gone: 9}, add("y", Done, "", 4, 5)}, false},
		"a removal of nothing":                      {[]*deed{remove("r", 1, 2)}, false},
	} {
		h := history{deeds: c.deeds}
		require.Equal(t, c.ok, h.check() == "", name)
	}
}
