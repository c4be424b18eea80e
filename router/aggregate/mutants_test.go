// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// mutant is the source with one rule less.
type mutant struct {
	rule    string // in the words of the page
	file    string
	was, is string // was is there once
	tests   string // those that find it
}

var mutants = []mutant{
	{
		"tokens are authentic", "token.go",
		"subtle.ConstantTimeCompare(s.sum(nil, payload), mac) != 1", "subtle.ConstantTimeCompare(mac, mac) != 1", "TestTokensAreAuthentic",
	},
	{
		"a continue token is good for its own list", "list.go",
		"c.query != l.q.hash()", "c.query == [8]byte{}", "TestContinueTokensThatAreRefused",
	},
	{
		"all pages are at the versions of the first", "list.go",
		"opts.ResourceVersion, opts.ResourceVersionMatch = c.sources[c.next].rv, metav1.ResourceVersionMatchExact", "opts.ResourceVersion = \"\"", "TestPagesAreOneList",
	},
	{
		"a list needs as many regions as the policy says", "list.go",
		"!l.api.opts.Policy.met(outcomes) ||", "", "TestPolicies",
	},
	{
		"an empty list needs a region that listed nothing", "list.go",
		"|| !listed {", "|| !listed && len(l.sources) == 0 {", "TestAnEmptyListMeansEmpty",
	},
	{
		"a failure on the way to a region is not the region's answer", "outcome.go",
		"!errors.As(err, &way) && ", "(errors.As(err, &way) || true) && ", "TestOnlyARegionsAnswerIsNotFound",
	},
	{
		"an error that not all regions say is nobody's", "outcome.go",
		"i > 0 && status.Code != common.Code", "i < 0", "TestPartialErrorsAreWhatAllSay",
	},
	{
		"errors name no peer", "outcome.go",
		`return fmt.Sprintf("region %s: %s", o.Region, o.State)`, `return fmt.Sprintf("region %s: %v", o.Region, o.Err)`, "TestRegionsOfARouter",
	},
	{
		"one cluster that serves two regions is asked once", "api.go",
		"if taken[key] {", "if false {", "TestRegionsOfARouter",
	},
	{
		"the watch of a region begins before its list", "feed.go",
		`	w, err := f.watch(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := f.list(ctx, at); err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
`, `	if err := f.list(ctx, at); err != nil {
		return nil, err
	}
	return f.watch(ctx, at)
`, "TestRestoredAtAnyRequest",
	},
	{
		"a watch that was interrupted compares what it delivered", "feed.go",
		"	if err := f.list(ctx, at); err != nil {\n		w.Stop()", "	if f.at == at && !f.unknown {\n		return w, nil\n	}\n	if err := f.list(ctx, at); err != nil {\n		w.Stop()", "TestRestoredAtAnyRequest",
	},
	{
		"a watch that resumes compares what was delivered before it", "feed.go",
		"f.stamp != 0 && f.stamp != was.stamp()", "f.stamp == 1", "TestRestoredAtAnyRequest",
	},
	{
		"a region that was restored to before the last event is not waited for", "feed.go",
		"return comparable && ok && n < m", "return comparable && ok && n > m+1<<40", "TestRestoredAndNotAsFar",
	},
	{
		"a repair is gone on with, and leads nowhere else", "feed.go",
		"f.at = at // whatever", "defer func() {\n\t\t\tif len(f.ledger.missing()) == 0 {\n\t\t\t\tf.at = at\n\t\t\t}\n\t\t}() // whatever", "TestARepairIsGoneOnWith",
	},
	{
		"a version in the middle of a repair is good for nothing", "feed.go",
		"n.stamp = 0\n", "n.at, n.stamp = f.at, 0\n", "TestResumeInTheMiddleOfARepair",
	},
	{
		"nobody resumes in the middle of a repair", "stream.go",
		`p.rv == "" || `, "", "TestResumeInTheMiddleOfARepair",
	},
	{
		"content is compared, not versions alone", "ledger.go",
		"before.rv == now.rv && before.print == now.print", "before.rv == now.rv", "TestLedger",
	},
	{
		"an object in another's place is another object", "ledger.go",
		"case before.uid != now.uid:", "case before.uid != before.uid:", "TestLedger",
	},
	{
		"a deletion is the end of the object that was delivered, not of another", "ledger.go",
		"if !ok || before.uid != o.GetUID() {", "if !ok {", "TestLedger",
	},
	{
		"what a list does not have any more is deleted", "ledger.go",
		"if e.pass != l.pass {", "if e.pass > l.pass {", "TestModel|TestLedger|TestRestoredAtAnyRequest",
	},
	{
		"the objects of a region that leaves are deleted", "stream.go",
		"range f.ledger.all() {", "range f.ledger.all()[:0] {", "TestRegionsJoinAndLeaveWithoutCuttingTheStream",
	},
	{
		"the initial events end once the policy is met", "stream.go",
		" || !s.api.opts.Policy.met(outcomes) {", " {", "TestInitialEventsEndOnceAllRegionsAreThrough",
	},
	{
		"no bookmark comes before the initial events have ended", "stream.go",
		"s.silent && !s.initial && ", "s.silent && ", "TestNoBookmarkInTheMiddleOfTheInitialEvents",
	},
	{
		"no bookmark has no kind", "stream.go",
		"!s.initial && !s.kind.Empty() && ", "!s.initial && ", "TestNoBookmarkOfNoKind",
	},
	{
		"a consumer that takes nothing loses the watch", "stream.go",
		"time.NewTimer(s.api.opts.Patience)", "time.NewTimer(1000 * s.api.opts.Patience)", "TestASlowConsumerLosesTheWatchInAnOrderlyWay",
	},
	{
		"a region that returns is asked at once", "feed.go",
		"	case <-recovered:\n		return true\n", "", "TestARegionThatReturnsDeliversWithinTheProbeInterval",
	},
	{
		"what was sent to a region that was away is not waited for", "attempt.go",
		"		case <-recovered:\n			cancel(errRecovered)\n", "", "TestARegionThatReturnsDeliversWithinTheProbeInterval",
	},
	{
		"a region that is frozen is not asked again and again", "list.go",
		"			err := s.unreachable()\n", "			var err error\n", "TestAFrozenRegionCostsAListLittle",
	},
	{
		"an answer has no more bytes than the limit", "budget.go",
		"case h.used+size > h.limit:", "case h.used+size > h.limit<<20:", "TestAHostileAnswerIsGivenUp|TestLargeObjectsAreReadInSmallerPages",
	},
	{
		"what is passed on counts until then", "list.go",
		"if err == nil && l.ahead {", "if err == nil {", "TestABudgetIsShared",
	},
	{
		"the annotation is never stored", "object.go",
		"delete(annotations, RegionAnnotation)", "", "TestWritesGoToTheObjectsOwnRegion",
	},
	{
		"a version of another region is a conflict", "write.go",
		"if a.version.at[a.version.origin].id != s.id {", "if a.version.origin < 0 {", "TestWritesGoToTheObjectsOwnRegion|TestNamesInSeveralRegions",
	},
	{
		"a name that several regions have is a conflict", "write.go",
		"if len(all) > 1 {", "if len(all) > 1<<20 {", "TestNamesInSeveralRegions",
	},
	{
		"a write by name alone needs an answer of all regions", "write.go",
		"!policy.met(outcomes) || len(all) == 0 && !All().met(outcomes)", "len(all) == 0 && !All().met(outcomes)", "TestNamesInSeveralRegions",
	},
}

// TestMutants takes away one rule after the other in the source, which still applies. With ATOLL_MUTANTS it builds each,
// runs the tests that should find it, and writes what they find to the page that ATOLL_DOCS names.
func TestMutants(t *testing.T) {
	built := os.Getenv("ATOLL_MUTANTS") != ""
	var table strings.Builder
	table.WriteString("| rule | what the tests find without it |\n|---|---|\n")
	for _, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			source, err := os.ReadFile(m.file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), m.was), "%s has changed: %s", m.file, m.was)
			mutated := strings.Replace(string(source), m.was, m.is, 1)
			_, err = parser.ParseFile(token.NewFileSet(), m.file, mutated, parser.SkipObjectResolution)
			require.NoError(t, err)
			if built {
				fmt.Fprintf(&table, "| %s | %s |\n", m.rule, found(t, m, mutated))
			}
		})
	}
	if built {
		docpage.Section(t, "mutants-aggregate.md", "aggregate", table.String())
	}
}

// chance is what is another in each run: hashes and UIDs.
var chance = regexp.MustCompile(`0x[0-9a-f]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{12,}`)

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (Test\w+)`)

// found builds the mutant, runs its tests and returns those that fail.
func found(t *testing.T, m mutant, source string) string {
	t.Helper()
	dir := t.TempDir()
	file, err := filepath.Abs(m.file)
	require.NoError(t, err)
	mutated, overlay := filepath.Join(dir, m.file), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(mutated, []byte(source), 0o600))
	data, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, data, 0o600))
	command := exec.CommandContext(t.Context(), "go", "test", "-overlay="+overlay, "-vet=off", "-count=1", "-failfast", "-run=^("+m.tests+")$", ".", "-rapid.nofailfile")
	command.Env = append(os.Environ(), "ATOLL_DOCS=", "ATOLL_MUTANTS=")
	out, err := command.CombinedOutput()
	require.Error(t, err, "nobody notices: %s", m.rule)
	tests := failure.FindStringSubmatch(string(out))
	require.NotEmpty(t, tests, "%s", out)
	return tests[1] + ": " + chance.ReplaceAllString(said(string(out)), "…")
}

// said is the first thing that a failed test says.
func said(out string) string {
	for line := range strings.Lines(out) {
		if _, text, ok := strings.Cut(line, "Messages:"); ok {
			return strings.TrimSpace(text)
		}
	}
	_, text, _ := strings.Cut(out, "Error:")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(first) == "Not equal:" {
		lines := strings.SplitN(rest, "\n", 3)
		return strings.Join(strings.Fields(lines[0]+"; "+lines[1]), " ")
	}
	return strings.TrimSpace(first)
}
