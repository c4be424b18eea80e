// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// duplicateFields returns a message for each field that occurs twice in data. It checks only
// JSON.
func duplicateFields(data []byte) []string {
	d := duplicates{decoder: json.NewDecoder(bytes.NewReader(data))}
	d.value("")
	return d.found
}

type duplicates struct {
	decoder *json.Decoder
	found   []string
}

// value reads the JSON value at path and records the fields that occur twice in it. It returns
// false at the end of the data or after an error.
func (d *duplicates) value(path string) bool {
	token, err := d.decoder.Token()
	if err != nil {
		return false
	}
	switch token {
	case json.Delim('{'):
		return d.object(path)
	case json.Delim('['):
		for i := 0; d.decoder.More(); i++ {
			if !d.value(fmt.Sprintf("%s[%d]", path, i)) {
				return false
			}
		}
		_, err = d.decoder.Token()
	}
	return err == nil
}

func (d *duplicates) object(path string) bool {
	seen := map[string]bool{}
	for d.decoder.More() {
		token, err := d.decoder.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return false
		}
		at := name
		if path != "" {
			at = path + "." + name
		}
		if seen[name] {
			d.found = append(d.found, fmt.Sprintf("duplicate field %q", at))
		}
		seen[name] = true
		if !d.value(at) {
			return false
		}
	}
	_, err := d.decoder.Token()
	return err == nil
}
