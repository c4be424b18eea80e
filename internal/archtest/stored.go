// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// storedValue matches names that clusters and other programs store: labels, annotations and finalizers (a domain and a
// name), field managers, metrics.
var storedValue = regexp.MustCompile(`^([a-z0-9-]+\.)+(dev|io)(/|$)|^atoll(-[a-z-]+)?$|^atoll_[a-z_]+$`)

// storedConst matches the names of constants for parts of the log file, and of exit codes.
var storedConst = regexp.MustCompile(`Bucket$|^(marker|fileFormat|exit[A-Z]\w*)$`)

// StoredConstants returns the constants of a package whose values are stored outside the process: each string constant
// of API types or of a type Reason, and each constant whose value matches storedValue or whose name matches storedConst. It also returns
// each string literal that names a metric.
func StoredConstants(p Package, files []*ast.File) []string {
	var found []string
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				if n.Tok != token.CONST {
					return true
				}
				for _, spec := range n.Specs {
					found = append(found, stored(p, spec.(*ast.ValueSpec))...)
				}
			case *ast.BasicLit:
				if v, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && strings.HasPrefix(v, "atoll_") && storedValue.MatchString(v) {
					found = append(found, "metric "+v)
				}
			}
			return true
		})
	}
	return found
}

func stored(p Package, spec *ast.ValueSpec) []string {
	var found []string
	for i, name := range spec.Names {
		if i >= len(spec.Values) {
			continue
		}
		lit, ok := spec.Values[i].(*ast.BasicLit)
		if !ok {
			continue
		}
		value, err := strconv.Unquote(lit.Value)
		isString := lit.Kind == token.STRING && err == nil
		switch {
		case isString && storedValue.MatchString(value):
			found = append(found, "name "+value) // in whichever package it is declared
		case isString && (path.Base(p.Path) == "v1alpha1" || isReason(spec.Type) && !strings.Contains(p.Path, "/internal/")):
			found = append(found, p.Path+" "+value)
		case storedConst.MatchString(name.Name) && !strings.Contains(value, "\n"):
			found = append(found, fmt.Sprintf("%s.%s %s", path.Base(p.Path), name.Name, lit.Value))
		}
	}
	return found
}

// isReason reports whether a type is the Reason of a package, whose values conditions have.
func isReason(t ast.Expr) bool {
	name, ok := t.(*ast.Ident)
	return ok && name.Name == "Reason"
}

// StoredFields returns each field of a CRD's schema with its type and its enumerated values.
func StoredFields(crd []byte) ([]string, error) {
	var d struct {
		Metadata struct{ Name string }
		Spec     struct {
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema schemaNode }
			}
		}
	}
	if err := yaml.Unmarshal(crd, &d); err != nil {
		return nil, err
	}
	var found []string
	for _, v := range d.Spec.Versions {
		found = append(found, v.Schema.OpenAPIV3Schema.fields("crd "+d.Metadata.Name+" "+v.Name+" ")...)
	}
	return found, nil
}

type schemaNode struct {
	Type                 string
	Enum                 []any
	Properties           map[string]schemaNode
	Items                *schemaNode
	AdditionalProperties *schemaNode
}

func (n schemaNode) fields(at string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		p := n.Properties[name]
		line := at + "." + name + " " + p.Type
		for _, v := range p.Enum {
			line += fmt.Sprintf(" %v", v)
		}
		found = append(found, line)
		found = append(found, p.fields(at+"."+name)...)
	}
	if n.Items != nil {
		if len(n.Items.Enum) > 0 {
			found = append(found, fmt.Sprintf("%s[] %v", at, n.Items.Enum))
		}
		found = append(found, n.Items.fields(at+"[]")...)
	}
	if n.AdditionalProperties != nil {
		found = append(found, n.AdditionalProperties.fields(at+"{}")...)
	}
	return found
}
