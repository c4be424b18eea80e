// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// row gives the reason why a loop writes a field.
type row struct {
	resource string // * matches each
	path     string // as shorten returns it; with .* at its end it also matches all paths below; * matches each
	loop     string
	manager  string
	why      string
}

// races reports whether a Controller and a Coordinator make the same write, so that the first
// writer differs from run to run.
func (r row) races() bool {
	return r.manager == "atoll-account" || r.manager == "" && (r.resource == rolesType || r.resource == bindingsType)
}

// turn describes how loops that write one field take turns.
type turn struct {
	resource, path string // as in a row
	how            string
}

// apart reports whether the loops write different objects. The beginning of t.how decides this.
func (t turn) apart() bool {
	return strings.HasPrefix(t.how, "Never one object") && !strings.HasPrefix(t.how, "Never one object but")
}

// judge compares the recorded writes with the tables, and returns the differences.
func (w *writers) judge(rows []row, turns []turn) []string {
	var wrong []string
	used, taken := map[row]bool{}, map[turn]bool{}
	for f, by := range w.of {
		for wr := range by {
			r, ok := rowOf(rows, f, wr)
			if !ok {
				wrong = append(wrong, fmt.Sprintf("no row for %s %s by %s as %q", f.resource, f.path, wr.loop, wr.manager))
			}
			used[r] = true
		}
		if len(loopsOf(by)) < 2 && !w.shared[f] {
			continue
		}
		t, ok := turnOf(turns, f)
		if !ok {
			wrong = append(wrong, fmt.Sprintf("no word on turns at %s %s, which %v write", f.resource, f.path, loopsOf(by)))
		}
		if t.apart() && w.shared[f] {
			wrong = append(wrong, fmt.Sprintf("%v have written %s %s of one object", loopsOf(by), f.resource, f.path))
		}
		taken[t] = true
	}
	for _, r := range rows {
		if !used[r] && !r.races() {
			wrong = append(wrong, fmt.Sprintf("nothing writes %+v", r))
		}
	}
	for _, t := range turns {
		if !taken[t] && t.resource != rolesType && t.resource != bindingsType {
			wrong = append(wrong, fmt.Sprintf("no loops take turns at %+v", t))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func loopsOf(by map[writer]bool) []string {
	loops := map[string]bool{}
	for wr := range by {
		loops[wr.loop] = true
	}
	return slices.Sorted(maps.Keys(loops))
}

// rowOf returns the most specific row of a field and a writer.
func rowOf(rows []row, f field, wr writer) (row, bool) {
	var best row
	for _, r := range rows {
		if r.loop == wr.loop && r.manager == wr.manager && covers(r.resource, r.path, f) && len(r.resource+r.path) > len(best.resource+best.path) {
			best = r
		}
	}
	return best, best != row{}
}

func turnOf(turns []turn, f field) (turn, bool) {
	var best turn
	for _, t := range turns {
		if covers(t.resource, t.path, f) && len(t.resource+t.path) > len(best.resource+best.path) {
			best = t
		}
	}
	return best, best != turn{}
}

// covers reports whether a row with that resource and path matches a field.
func covers(resource, path string, f field) bool {
	if resource != "*" && resource != f.resource {
		return false
	}
	above, all := strings.CutSuffix(path, ".*")
	return path == "*" || path == f.path || all && (f.path == above || strings.HasPrefix(f.path, above+"."))
}

func compareFields(a, b field) int {
	return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.path, b.path))
}

func TestJudge(t *testing.T) {
	const things = "things.example.com"
	one, two := writer{"a.One", "one"}, writer{"a.Two", "two"}
	rowOne, rowTwo := row{things, "spec.*", "a.One", "one", "why"}, row{"*", "*", "a.Two", "two", "why"}
	took := turn{things, "spec.*", "by night"}
	recorded := func(by ...writer) *writers {
		w := newWriters()
		f := field{things, "spec.size"}
		w.of[f] = map[writer]bool{}
		for _, wr := range by {
			w.of[f][wr] = true
		}
		return w
	}
	shared := recorded(one)
	shared.shared[field{things, "spec.size"}] = true
	for name, test := range map[string]struct {
		w     *writers
		rows  []row
		turns []turn
		wrong []string
	}{
		"one writer":                   {recorded(one), []row{rowOne}, nil, nil},
		"a field without a row":        {recorded(one), nil, nil, []string{"no row for"}},
		"another manager":              {recorded(one), []row{{things, "spec.*", "a.One", "two", "why"}}, nil, []string{"no row for", "nothing writes"}},
		"a row that nothing writes":    {recorded(one), []row{rowOne, rowTwo}, nil, []string{"nothing writes"}},
		"a row that another one hides": {recorded(one), []row{rowOne, {"*", "*", "a.One", "one", "why"}}, nil, []string{"nothing writes"}},
		"two that take turns":          {recorded(one, two), []row{rowOne, rowTwo}, []turn{took}, nil},
		"two without a word":           {recorded(one, two), []row{rowOne, rowTwo}, nil, []string{"no word on turns"}},
		"two of one kind":              {shared, []row{rowOne}, nil, []string{"no word on turns"}},
		"two of one object":            {shared, []row{rowOne}, []turn{{things, "spec.*", "Never one object: each has its own."}}, []string{"of one object"}},
		"a word too much":              {recorded(one), []row{rowOne}, []turn{took}, []string{"no loops take turns"}},
		"a word on another field":      {recorded(one, two), []row{rowOne, rowTwo}, []turn{{things, "spec", "x"}}, []string{"no loops take turns", "no word on turns"}},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := test.w.judge(test.rows, test.turns)
			require.Len(t, wrong, len(test.wrong), "%q", wrong)
			for i, text := range test.wrong {
				require.Contains(t, wrong[i], text)
			}
		})
	}
}
