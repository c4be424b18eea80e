// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atoll_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

const (
	shape = `(?:\[[^][()|"]+\]|\[\([^][()|"]+\)\]|\(\[[^][()|"]+\]\))?` // a box, a cylinder or a stadium
	node  = `([a-z][A-Za-z0-9]*)` + shape
	nodes = node + `(?: & ` + node + `)*`
	arrow = ` (?:-->|-- (?:[^->]|[a-z]-[a-z0-9])+ -->|-\. [^->.]+ \.->) `
)

var (
	flowStatement = regexp.MustCompile(`^` + nodes + `(?:` + arrow + nodes + `)*$`)
	subgraph      = regexp.MustCompile(`^subgraph [a-z][A-Za-z0-9]*(?:\[[^][()|"]+\])?$`)
	participant   = regexp.MustCompile(`^participant ([A-Z])(?: as .+)?$`)
	message       = regexp.MustCompile(`^([A-Z])(?:->>|-->>|--x)([A-Z]): .+$`)
	remark        = regexp.MustCompile(`^Note over ([A-Z]): .+$`)
)

// pictureError returns the first mistake in the syntax of a picture in Mermaid. It accepts the part of the language that the pages use.
func pictureError(text string) error {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if lines[0] == "sequenceDiagram" {
		return sequenceError(lines[1:])
	}
	if lines[0] != "flowchart LR" && lines[0] != "flowchart TB" {
		return fmt.Errorf("unknown kind of picture %q", lines[0])
	}
	open := 0
	for _, line := range lines[1:] {
		switch line = strings.TrimSpace(line); {
		case subgraph.MatchString(line):
			open++
		case line == "end":
			open--
		case !flowStatement.MatchString(line):
			return fmt.Errorf("not a statement: %q", line)
		}
		if open < 0 {
			return fmt.Errorf("an end without a subgraph")
		}
	}
	if open != 0 {
		return fmt.Errorf("a subgraph has no end")
	}
	return nil
}

func sequenceError(lines []string) error {
	declared := map[string]bool{}
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if m := participant.FindStringSubmatch(line); m != nil {
			declared[m[1]] = true
			continue
		}
		m := message.FindStringSubmatch(line)
		if m == nil {
			m = remark.FindStringSubmatch(line)
		}
		if m == nil {
			return fmt.Errorf("not a statement: %q", line)
		}
		for _, name := range m[1:] {
			if !declared[name] {
				return fmt.Errorf("%q is no participant", name)
			}
		}
	}
	return nil
}

// Each picture in the pages has the syntax of Mermaid, and each of these concepts has a picture.
func TestPictures(t *testing.T) {
	pictures := map[string]int{}
	for _, path := range pages(t) {
		for _, b := range docpage.Blocks(t, path) {
			if b.Language == "mermaid" {
				require.NoError(t, pictureError(b.Text), "%s:%d", path, b.Line)
				pictures[path]++
			}
		}
	}
	for _, path := range []string{"docs/glossary.md", "docs/kubectl.md", "docs/fanout.md", "docs/placement.md", "docs/pitfalls.md", "docs/extend.md", "docs/embed.md"} {
		require.Positive(t, pictures[path], path)
	}
}

func TestPictureError(t *testing.T) {
	for _, good := range []string{
		"flowchart LR\n  a[one] -- to --> b[(two)]\n  subgraph s[all of it]\n  c & d --> a\n  end\n",
		"sequenceDiagram\n  participant A as one\n  A->>A: text\n  Note over A: text\n",
	} {
		require.NoError(t, pictureError(good))
	}
	for _, bad := range []string{
		"flowchart\n", "flowchart LR\n  a[one --> b\n", "flowchart LR\n  a -> b\n", "flowchart LR\n  subgraph s\n", "flowchart LR\n  end\n",
		"flowchart LR\n  a[(one] --> b\n", "sequenceDiagram\n  A->>B: text\n", "sequenceDiagram\n  participant A\n  A: text\n", "graph\n",
	} {
		require.Error(t, pictureError(bad), bad)
	}
}
