// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// maxJSONPatch is the greatest number of operations that the server accepts in a JSON patch, as in a real server.
const maxJSONPatch = 10000

// applyJSONPatch applies an RFC 6902 patch to o, which it modifies.
func applyJSONPatch(o object, data []byte) (object, error) {
	var decoded any
	if err := utiljson.Unmarshal(data, &decoded); err != nil {
		return nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	operations, ok := decoded.([]any)
	if !ok {
		return nil, apierrors.NewBadRequest("error decoding patch: expected a list of operations")
	}
	if len(operations) > maxJSONPatch {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxJSONPatch, len(operations)))
	}
	var document any = o
	for _, entry := range operations {
		operation, ok := entry.(map[string]any)
		if !ok {
			return nil, apierrors.NewBadRequest("error decoding patch: an operation is not an object")
		}
		var err error
		if document, err = step(document, operation); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
	}
	patched, ok := document.(map[string]any)
	if !ok {
		return nil, apierrors.NewBadRequest("the patch leaves no object")
	}
	return patched, nil
}

// step applies one operation, as leniently as a real server: an index may count from the end, replace may add a field,
// and an absent field is null for test and copy.
func step(document any, operation map[string]any) (any, error) {
	path, ok := operation["path"].(string)
	if !ok {
		return nil, errors.New("operation without path")
	}
	op, value := text(operation["op"]), operation["value"]
	switch op {
	case "add":
		return edit(document, path, func(p location) (any, error) { return p.insert(value) })
	case "replace":
		if path == "" {
			return value, nil
		}
		return edit(document, path, func(p location) (any, error) { return p.set(value) })
	case "remove":
		return edit(document, path, location.remove)
	case "move", "copy":
		moved, err := find(document, text(operation["from"]))
		if err != nil {
			return nil, fmt.Errorf("%s operation does not apply: doc is missing from path: %s: %w", op, text(operation["from"]), err)
		}
		if op == "move" {
			if document, err = edit(document, text(operation["from"]), location.remove); err != nil {
				return nil, err
			}
		}
		moved = runtime.DeepCopyJSONValue(moved)
		return edit(document, path, func(p location) (any, error) { return p.insert(moved) })
	case "test":
		found, err := find(document, path)
		if err != nil {
			return nil, fmt.Errorf("test operation does not apply: is missing path: %s: %w", path, err)
		}
		if !reflect.DeepEqual(found, value) {
			return nil, fmt.Errorf("testing value %s failed: test failed", path)
		}
		return document, nil
	default:
		return nil, fmt.Errorf("unexpected kind: %s", op)
	}
}

var errMissing = errors.New("missing value")

// tokens splits a JSON pointer.
func tokens(pointer string) ([]string, error) {
	if !strings.HasPrefix(pointer, "/") {
		return nil, errMissing
	}
	parts := strings.Split(pointer[1:], "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

func find(document any, pointer string) (any, error) {
	if pointer == "" {
		return document, nil
	}
	parts, err := tokens(pointer)
	if err != nil {
		return nil, err
	}
	for i, part := range parts {
		if document, err = (location{document, part}).get(); err != nil {
			return nil, err
		}
		if document == nil && i < len(parts)-1 {
			return nil, errMissing
		}
	}
	return document, nil
}

// location is a field of an object or an element of a list.
type location struct {
	parent any
	part   string
}

// index returns the index that p names in a list of length n.
func (p location) index(n int) (int, error) {
	i, err := strconv.Atoi(p.part)
	if err != nil {
		return 0, fmt.Errorf("value was not a proper array index: '%s': %w", p.part, err)
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return 0, fmt.Errorf("unable to access invalid index: %s", p.part)
	}
	return i, nil
}

func (p location) get() (any, error) {
	switch parent := p.parent.(type) {
	case map[string]any:
		return parent[p.part], nil
	case []any:
		i, err := p.index(len(parent))
		if err != nil {
			return nil, err
		}
		return parent[i], nil
	default:
		return nil, errMissing
	}
}

func (p location) set(value any) (any, error) {
	switch parent := p.parent.(type) {
	case map[string]any:
		parent[p.part] = value
		return parent, nil
	case []any:
		i, err := p.index(len(parent))
		if err != nil {
			return nil, err
		}
		parent[i] = value
		return parent, nil
	default:
		return nil, errMissing
	}
}

// insert inserts value into the parent if the parent is a list. Otherwise it does the same as set.
func (p location) insert(value any) (any, error) {
	list, ok := p.parent.([]any)
	if !ok {
		return p.set(value)
	}
	if p.part == "-" {
		return append(list, value), nil
	}
	i, err := p.index(len(list) + 1)
	if err != nil {
		return nil, err
	}
	return slices.Insert(list, i, value), nil
}

func (p location) remove() (any, error) {
	switch parent := p.parent.(type) {
	case map[string]any:
		if _, ok := parent[p.part]; !ok {
			return nil, fmt.Errorf("unable to remove nonexistent key: %s: %w", p.part, errMissing)
		}
		delete(parent, p.part)
		return parent, nil
	case []any:
		i, err := p.index(len(parent))
		if err != nil {
			return nil, err
		}
		return slices.Delete(parent, i, i+1), nil
	default:
		return nil, errMissing
	}
}

// edit applies change to the location at pointer, and stores the result in the document.
func edit(document any, pointer string, change func(location) (any, error)) (any, error) {
	parts, err := tokens(pointer)
	if err == nil {
		document, err = editAt(document, parts, change)
	}
	if err != nil {
		return nil, fmt.Errorf("the operation does not apply to path %q: %w", pointer, err)
	}
	return document, nil
}

func editAt(document any, parts []string, change func(location) (any, error)) (any, error) {
	here := location{document, parts[0]}
	if len(parts) == 1 {
		return change(here)
	}
	inner, err := here.get()
	if err != nil {
		return nil, err
	}
	if inner == nil {
		return nil, errMissing
	}
	changed, err := editAt(inner, parts[1:], change)
	if err != nil {
		return nil, err
	}
	return here.set(changed)
}
