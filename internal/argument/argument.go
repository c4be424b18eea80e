// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package argument

import "reflect"

// Missing reports whether v is nil, or an interface that holds a nil pointer or a nil func, such as
// a *region.Ring whose constructor's error was ignored. Nil slices and maps are not missing.
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
