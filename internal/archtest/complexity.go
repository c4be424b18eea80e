// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// simple is the highest complexity of ordinary functions: fewer than one function in a hundred may exceed it. The
// linter gocyclo enforces a maximum of 20, with the exceptions in .golangci.yml.
const simple = 15

// Complexity counts the paths through a function as gocyclo does: one, and one more for each if, loop, case, && and ||.
func Complexity(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// Complexities returns violations if at least one function in a hundred exceeds the complexity simple, with a sentence
// for each of these functions. functions maps names to complexities.
func Complexities(functions map[string]int) []string {
	var above []string
	for name, n := range functions {
		if n > simple {
			above = append(above, name)
		}
	}
	if 100*len(above) < len(functions) {
		return nil
	}
	slices.SortFunc(above, func(a, b string) int { return functions[b] - functions[a] })
	wrong := []string{fmt.Sprintf("%d of %d functions are above complexity %d: fewer than one in a hundred may be", len(above), len(functions), simple)}
	for _, name := range above {
		wrong = append(wrong, fmt.Sprintf("%s has complexity %d: give a decision in it a name of its own", name, functions[name]))
	}
	return wrong
}
