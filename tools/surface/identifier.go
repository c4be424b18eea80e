// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/types"
	"strings"
)

const module = "github.com/atoll-dev/atoll"

// identifier is the name of an exported object: its package within the module, and its name there.
type identifier struct {
	pkg, name string
}

func (i identifier) String() string { return i.pkg + "." + i.name }

// identify returns the identifier of an exported package-level object or method of this
// module. It returns false for any other object.
func identify(o types.Object) (identifier, bool) {
	if o == nil || o.Pkg() == nil || !o.Exported() {
		return identifier{}, false
	}
	pkg, ok := strings.CutPrefix(o.Pkg().Path(), module+"/")
	if !ok {
		return identifier{}, false
	}
	f, ok := o.(*types.Func)
	if !ok || f.Signature().Recv() == nil {
		return identifier{pkg, o.Name()}, o.Parent() == o.Pkg().Scope()
	}
	receiver := named(f.Origin().Signature().Recv().Type())
	if receiver == nil || !receiver.Obj().Exported() {
		return identifier{}, false
	}
	return identifier{pkg, receiver.Obj().Name() + "." + o.Name()}, true
}

// named returns the named type of t, or of the type that t points to; nil for any other
// type.
func named(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

// library reports whether path is a package that users import.
func library(path string) bool {
	rest, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return false
	}
	for element := range strings.SplitSeq(rest, "/") {
		switch element {
		case "internal", "examples", "cmd", "tools":
			return false
		}
	}
	return true
}
