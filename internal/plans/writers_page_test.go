// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// page writes the tables of docs/evidence/writers.md.
func (w *writers) page(t *testing.T) {
	t.Helper()
	var list, shared strings.Builder
	resources, loops, managers := map[string]bool{}, map[string]bool{}, map[string]bool{}
	resource := ""
	shared.WriteString("| resource | fields | loops | how they take turns |\n|---|---|---|---|\n")
	taking := map[turn]map[string]bool{} // loops by turn
	for _, f := range slices.SortedFunc(maps.Keys(w.of), compareFields) {
		if f.resource != resource {
			fmt.Fprintf(&list, "\n### %s\n\n| field | loop | manager | why |\n|---|---|---|---|\n", f.resource)
			resource, resources[f.resource] = f.resource, true
		}
		for _, wr := range slices.SortedFunc(maps.Keys(w.of[f]), func(a, b writer) int { return strings.Compare(a.loop+a.manager, b.loop+b.manager) }) {
			r, _ := rowOf(fields, f, wr)
			fmt.Fprintf(&list, "| %s | `%s` | %s | %s |\n", code(f.path), wr.loop, code(wr.manager), r.why)
			loops[wr.loop], managers[wr.manager] = true, wr.manager != ""
		}
		if t, ok := turnOf(turns, f); ok && (len(loopsOf(w.of[f])) > 1 || w.shared[f]) {
			if taking[t] == nil {
				taking[t] = map[string]bool{}
			}
			for _, loop := range loopsOf(w.of[f]) {
				taking[t]["`"+loop+"`"] = true
			}
		}
	}
	for _, t := range turns {
		fmt.Fprintf(&shared, "| %s | %s | %s | %s |\n", t.resource, code(t.path), strings.Join(slices.Sorted(maps.Keys(taking[t])), ", "), t.how)
	}
	delete(managers, "")
	figures := fmt.Sprintf("%d fields of %d resources, written by %d loops under %d managers, in %d writes of %d scenarios. %d fields have several writers.\n",
		len(w.of), len(resources), len(loops), len(managers), w.writes, len(scenarios)+len(alone), w.several())
	t.Log(figures)
	docpage.Section(t, "writers.md", "figures", figures)
	docpage.Section(t, "writers.md", "turns", shared.String())
	docpage.Section(t, "writers.md", "marks", marks())
	docpage.Section(t, "writers.md", "fields", strings.TrimPrefix(list.String(), "\n"))
}

// several returns the number of fields that more than one loop writes, or that several loops of one
// kind write in one object.
func (w *writers) several() int {
	n := 0
	for f, by := range w.of {
		if len(loopsOf(by)) > 1 || w.shared[f] {
			n++
		}
	}
	return n
}

func code(text string) string {
	if text == "" || strings.HasPrefix(text, "(") {
		return text
	}
	return "`" + text + "`"
}
