// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const page = "../../docs/operations.md"

// TestConventions requires of each alert what those of the common mixins have: a name in CamelCase, a time to wait, a
// severity, a summary, a description, and a runbook. The runbook has a check and a remedy.
func TestConventions(t *testing.T) {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	sections := map[string]string{}
	for _, section := range strings.Split(string(data), "\n#### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	records, alerts := rules(t)
	seen := map[string]bool{}
	for _, r := range alerts {
		require.False(t, seen[r.Alert], r.Alert)
		seen[r.Alert] = true
		require.Regexp(t, `^Atoll([A-Z][a-z]+)+$`, r.Alert)
		wait, err := time.ParseDuration(r.For)
		require.NoError(t, err, r.Alert)
		require.Positive(t, wait, r.Alert)
		require.Contains(t, []string{"critical", "warning", "info"}, r.Labels["severity"], r.Alert)
		require.Len(t, r.Annotations, 3, r.Alert)
		require.Regexp(t, `^.{10,180}\.$`, r.Annotations["summary"], r.Alert)
		require.Regexp(t, `^.{40,}\.$`, r.Annotations["description"], r.Alert)
		require.Equal(t, "https://github.com/atoll-dev/atoll/blob/main/docs/operations.md#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
		text := sections[r.Alert]
		require.Contains(t, text, "*"+r.Labels["severity"]+", after "+r.For+".*", "the runbook of %s", r.Alert)
		require.Regexp(t, `(?s)\nCheck:\n\n- .*\nDo:\n\n- `, text, "the runbook of %s", r.Alert)
		delete(sections, r.Alert)
	}
	require.Empty(t, sections, "runbooks without an alert")
	for _, r := range records {
		require.Regexp(t, `^[a-z_]+:[a-z_]+:[a-z0-9_]+$`, r.Record)
	}
	for _, link := range regexp.MustCompile(`\]\(#([a-z0-9-]+)\)`).FindAllStringSubmatch(string(data), -1) {
		require.Regexp(t, `(?mi)^#+ `+strings.ReplaceAll(link[1], "-", "[ -]")+`$`, string(data))
	}
	for _, p := range panels(t) {
		require.Contains(t, string(data), p.Dashboard, "the page names the dashboard")
	}
}
