// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "go/types"

// contract is an interface that a type may have to satisfy.
type contract struct {
	name string
	typ  *types.Interface
}

// contractsOf returns the interfaces that p exports.
func contractsOf(p *types.Package) []contract {
	var found []contract
	for _, name := range p.Scope().Names() {
		o, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || !o.Exported() {
			continue
		}
		n, ok := o.Type().(*types.Named)
		if !ok || n.TypeParams().Len() > 0 {
			continue
		}
		if i, ok := n.Underlying().(*types.Interface); ok && i.IsMethodSet() {
			found = append(found, contract{p.Name() + "." + name, i})
		}
	}
	return found
}

// called maps each method that the standard library or Kubernetes looks for to the function that
// looks for it, or to the interface of the method. A package may have such a method without importing
// the package of the interface.
var called = map[string]string{
	"Error":       "error",
	"Unwrap":      "errors.Is and errors.As",
	"Is":          "errors.Is",
	"As":          "errors.As",
	"Timeout":     "net.Error",
	"String":      "fmt.Stringer",
	"GoString":    "fmt.GoStringer",
	"MarshalJSON": "json.Marshaler",
	"MarshalText": "encoding.TextMarshaler",
	"MarshalLog":  "logr.Marshaler",
	"LogValue":    "slog.LogValuer",
	"Status":      "apierrors.APIStatus",
	"ServeHTTP":   "http.Handler",
}

// satisfies returns the name of an interface for which type t needs its method m, or "" if no
// interface needs the method.
func (s *surface) satisfies(t *types.Named, m *types.Func) string {
	if name := called[m.Name()]; name != "" {
		return name
	}
	if types.IsInterface(t) {
		return ""
	}
	for _, c := range s.interfaces {
		if o, _, _ := types.LookupFieldOrMethod(c.typ, false, nil, m.Name()); o == nil {
			continue
		}
		if types.Implements(t, c.typ) || types.Implements(types.NewPointer(t), c.typ) {
			return c.name
		}
	}
	return ""
}
