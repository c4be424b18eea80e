// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package argument

import "reflect"

// Missing reports whether v is nil, or is an interface that holds a nil pointer or a nil func, such as a *region.Ring of which
// the error was ignored. Nil slices and maps are values.
func Missing(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return r.IsNil()
	default:
		return false
	}
}
