// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// riddles matches phrases that replace the name of a thing. A match means that the whole sentence must be rewritten,
// not only the phrase.
var riddles = regexp.MustCompile(`(?i)\bwhat (is|was|has|it|they|we|there|stands|one|others|who)\b|\bwhoever\b|\b(no|some)body\b|` +
	`\b(is|are|was|were|be) (told|said)\b|\bis none\b|\bno more\b|\bthat is there\b|\bof that\b|\bsays what\b`)

// directive matches comments that tools read, and the output of examples.
var directive = regexp.MustCompile(`^(//nolint|//go:|// \+|// Output:|//\s*Unordered output:)`)

// Comments checks that the comments of a file have no riddles.
func Comments(path string, file *ast.File, set *token.FileSet) []string {
	var wrong []string
	for _, group := range file.Comments {
		var text []string
		for _, c := range group.List {
			if directive.MatchString(c.Text) {
				break
			}
			text = append(text, strings.TrimPrefix(c.Text, "//"))
		}
		if found := riddle(strings.Join(text, " ")); found != "" {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %q in a comment: rewrite the sentence so that it names the thing", path, set.Position(group.Pos()).Line, found))
		}
	}
	return wrong
}

// riddleNames matches identifiers that hide their meaning.
var riddleNames = regexp.MustCompile(`^(mine|others|made|place|seen|soon|told|said|whole|sight|wish)$`)

// Names checks that no type, function or method of a file has a name that riddleNames matches.
func Names(path string, file *ast.File, set *token.FileSet) []string {
	var wrong []string
	check := func(name *ast.Ident) {
		if riddleNames.MatchString(name.Name) {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %q: name the thing", path, set.Position(name.Pos()).Line, name.Name))
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			check(d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					check(t.Name)
				}
			}
		}
	}
	return wrong
}

var (
	fenced    = regexp.MustCompile("(?s)```.*?```|`[^`]*`|<!--.*?-->")
	generated = regexp.MustCompile(`(?s)<!-- [^>]*: written by the tests -->.*?<!-- end of [^>]* -->`)
)

// Prose checks that the paragraphs of a page have no riddles. Code, and sections that tests write, are left out.
func Prose(path, page string) []string {
	var wrong []string
	for paragraph := range strings.SplitSeq(fenced.ReplaceAllString(generated.ReplaceAllString(page, ""), "code"), "\n\n") {
		if found := riddle(paragraph); found != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %q in: %.120s: rewrite the sentence so that it names the thing", path, found, strings.Join(strings.Fields(paragraph), " ")))
		}
	}
	return wrong
}

func riddle(text string) string {
	return riddles.FindString(strings.Join(strings.Fields(text), " "))
}
