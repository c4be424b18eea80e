// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// named are rules that no exploration can break, because time or the runtime is part of them. A
// separate test fails for each such rule that is broken.
var named = []struct{ n, rule, dir, test, want string }{
	{"N14", "other processes fence the reservations of an abandoned machine", ".", "TestScrapped", "I6: its reservations outlive it"},
	{"N21", "a refusal cancels no sibling", "../..", "TestARefusalCancelsNoSibling", "requests of unknown effect"},
	{"N22", "a heartbeat changes the object", ".", "TestHeartbeat", "a live reservation is fenced"},
	{"", "an operation that cannot look at the owner's peer says so", ".", "TestRemovalOfUnknownPeer", "it says that nothing is there"},
	{"", "an operation is in doubt if a peer refuses to answer", ".", "TestRecoveryThatIsRefused", "it says ended"},
	{"", "a recovery does not wait for unreachable peers", ".", "TestRecoveryWaitsForNobody", "it finds no end"},
	{"", "a removal is of one object, and not of a later one of the name", ".", "TestRemovalAmongOthers", "it never ends"},
	{"", "the callers' histories can be put in one order", ".", "TestHistoryNotices", "history"},
	{"", "the simulator notices, and shrinks what it finds", ".", "TestShrink", "I3"},
}

// interleavings is the number of interleavings that are known to break a variant of the protocol.
const interleavings = 50

// notOurs are the interleavings of features that this protocol does not have.
var notOurs = []string{"N45"}

type mutantsPage struct{ rows []mutantRow }

type mutantRow struct {
	n            string
	line, by     string
	found, steps string
}

func newMutantsPage() *mutantsPage {
	p := &mutantsPage{}
	for _, m := range named {
		p.rows = append(p.rows, mutantRow{n: m.n, line: m.rule, by: "`" + m.test + "`", found: m.want, steps: "–"})
	}
	return p
}

// explored adds a row for b. states is the number of states that were explored, and first is the
// violation that was found.
func (p *mutantsPage) explored(b broken, states int, first string) {
	found, rest, _ := strings.Cut(first, ", after ")
	steps, _, _ := strings.Cut(rest, " ")
	p.rows = append(p.rows, mutantRow{n: b.n, line: b.rule, by: fmt.Sprintf("exploration, %d states", states), found: found, steps: steps})
}

func (p *mutantsPage) write(t *testing.T) {
	t.Helper()
	number := func(r mutantRow) int {
		n, err := strconv.Atoi(strings.TrimPrefix(r.n, "N"))
		if err != nil {
			return 1000
		}
		return n
	}
	slices.SortStableFunc(p.rows, func(a, b mutantRow) int { return cmp.Compare(number(a), number(b)) })
	var b strings.Builder
	b.WriteString("| | rule that is broken | noticed by | violation | steps |\n|---|---|---|---|---|\n")
	for _, r := range p.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cmp.Or(r.n, "–"), r.line, r.by, r.found, r.steps)
	}
	docpage.Section(t, "mutants.md", "mutants", b.String())
}

// TestEveryInterleavingIsCaught checks that each interleaving that is known to break a
// variant of the protocol has a mutant or a test in named, except those in notOurs.
func TestEveryInterleavingIsCaught(t *testing.T) {
	caught := map[string]bool{}
	for _, m := range allMutants() {
		for n := range strings.SplitSeq(m.n, "/") {
			caught[n] = true
		}
	}
	for _, m := range named {
		caught[m.n] = true
	}
	for i := range interleavings {
		n := fmt.Sprintf("N%d", i+1)
		require.Equal(t, !slices.Contains(notOurs, n), caught[n], "a variant that allows %s", n)
	}
}

// TestNamed checks that the tests in named exist.
func TestNamed(t *testing.T) {
	for _, m := range named {
		files, err := filepath.Glob(filepath.Join(m.dir, "*_test.go"))
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(files, func(path string) bool {
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			return strings.Contains(string(src), "\nfunc "+m.test+"(t *testing.T)")
		}), "%s in %s", m.test, m.dir)
	}
}
