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

// maxJSONPatch is the limit of a real server.
const maxJSONPatch = 10000

// applyJSONPatch applies an RFC 6902 patch to o, which it takes over.
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

// step carries out one operation.
func step(document any, operation map[string]any) (any, error) {
	path, ok := operation["path"].(string)
	if !ok {
		return nil, errors.New("operation without path")
	}
	value, given := operation["value"]
	from := text(operation["from"])
	switch op := text(operation["op"]); op {
	case "add":
		if !given {
			return nil, errors.New("add operation without value")
		}
		return set(document, path, value, true)
	case "replace":
		if _, err := find(document, path); err != nil {
			return nil, fmt.Errorf("replace operation does not apply: doc is missing key: %s: missing value", path)
		}
		return set(document, path, value, false)
	case "remove":
		return unset(document, path)
	case "move", "copy":
		moved, err := find(document, from)
		if err != nil {
			return nil, fmt.Errorf("%s operation does not apply: doc is missing from path: %s: missing value", op, from)
		}
		moved = runtime.DeepCopyJSONValue(moved)
		if op == "move" {
			if document, err = unset(document, from); err != nil {
				return nil, err
			}
		}
		return set(document, path, moved, true)
	case "test":
		found, err := find(document, path)
		if err != nil && value != nil {
			return nil, fmt.Errorf("testing path %s failed: missing value", path)
		}
		if !reflect.DeepEqual(found, value) {
			return nil, fmt.Errorf("testing value %s failed: test failed", path)
		}
		return document, nil
	default:
		return nil, fmt.Errorf("unexpected kind: %s", op)
	}
}

// tokens divides a JSON pointer.
func tokens(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("path %q does not begin with a slash", pointer)
	}
	parts := strings.Split(pointer[1:], "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

func find(document any, pointer string) (any, error) {
	parts, err := tokens(pointer)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		switch d := document.(type) {
		case map[string]any:
			next, ok := d[part]
			if !ok {
				return nil, fmt.Errorf("key %q is missing", part)
			}
			document = next
		case []any:
			i, err := index(part, len(d)-1)
			if err != nil {
				return nil, err
			}
			document = d[i]
		default:
			return nil, fmt.Errorf("%q is in neither an object nor a list", part)
		}
	}
	return document, nil
}

func index(part string, last int) (int, error) {
	i, err := strconv.Atoi(part)
	if err != nil {
		return 0, err
	}
	if i < 0 || i > last {
		return 0, fmt.Errorf("unable to access invalid index: %d: invalid index referenced", i)
	}
	return i, nil
}

// set puts value at pointer. insert moves the elements of a list aside.
func set(document any, pointer string, value any, insert bool) (any, error) {
	parts, err := tokens(pointer)
	if err != nil {
		return nil, err
	}
	return edit(document, parts, pointer, func(parent any, last string) (any, error) {
		switch p := parent.(type) {
		case map[string]any:
			p[last] = value
			return p, nil
		case []any:
			if last == "-" && insert {
				return append(p, value), nil
			}
			limit := len(p) - 1
			if insert {
				limit = len(p)
			}
			i, err := index(last, limit)
			if err != nil {
				return nil, err
			}
			if insert {
				return slices.Insert(p, i, value), nil
			}
			p[i] = value
			return p, nil
		default:
			return nil, fmt.Errorf("add operation does not apply: doc is missing path: %q: missing value", pointer)
		}
	}, value)
}

func unset(document any, pointer string) (any, error) {
	parts, err := tokens(pointer)
	if err != nil {
		return nil, err
	}
	return edit(document, parts, pointer, func(parent any, last string) (any, error) {
		switch p := parent.(type) {
		case map[string]any:
			if _, ok := p[last]; !ok {
				return nil, fmt.Errorf("remove operation does not apply: doc is missing path: %q: missing value", pointer)
			}
			delete(p, last)
			return p, nil
		case []any:
			i, err := index(last, len(p)-1)
			if err != nil {
				return nil, err
			}
			return slices.Delete(p, i, i+1), nil
		default:
			return nil, fmt.Errorf("remove operation does not apply: doc is missing path: %q: missing value", pointer)
		}
	}, nil)
}

// edit applies change to the parent of the last part and puts the changed parent back into its own.
func edit(document any, parts []string, pointer string, change func(parent any, last string) (any, error), whole any) (any, error) {
	switch len(parts) {
	case 0:
		return whole, nil
	case 1:
		return change(document, parts[0])
	}
	switch d := document.(type) {
	case map[string]any:
		inner, ok := d[parts[0]]
		if !ok {
			break
		}
		changed, err := edit(inner, parts[1:], pointer, change, whole)
		d[parts[0]] = changed
		return d, err
	case []any:
		i, err := index(parts[0], len(d)-1)
		if err != nil {
			return nil, err
		}
		changed, err := edit(d[i], parts[1:], pointer, change, whole)
		d[i] = changed
		return d, err
	}
	return nil, fmt.Errorf("add operation does not apply: doc is missing path: %q: missing value", pointer)
}
