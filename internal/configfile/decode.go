// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// Error is every fault of a configuration.
type Error struct {
	// Source is the path of the file.
	Source string
	// Lines has a line for each fault: the path of the field, the reason, and what would be accepted.
	Lines []string
}

// Error returns all lines, each with the path of the file.
func (e *Error) Error() string {
	lines := make([]string, len(e.Lines))
	for i, line := range e.Lines {
		lines[i] = e.Source + ": " + line
	}
	return strings.Join(lines, "\n")
}

// Form is how the content of a file is read into a configuration.
type Form struct {
	// Into is a pointer to the configuration.
	Into any
	// Complete sets the defaults of fields that are not set.
	Complete func()
	// Check returns every fault of the complete configuration.
	Check func() Faults
}

// Load reads the file at path, sets the defaults and checks the result. It fails with an *Error if the content is
// wrong, and with the error of reading the file otherwise.
func Load(path string, form Form) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	err = Parse(data, form)
	if faults, ok := errors.AsType[*Error](err); ok {
		faults.Source = path
	}
	return err
}

// Parse is Load for the content of a file.
func Parse(data []byte, form Form) error {
	if err := yaml.UnmarshalStrict(data, form.Into); err != nil {
		return &Error{Source: "configuration", Lines: []string{oneLine(err)}}
	}
	form.Complete()
	if faults := form.Check(); len(faults) > 0 {
		return &Error{Source: "configuration", Lines: faults}
	}
	return nil
}

// oneLine returns the text of an error of the YAML parser in one line, without its prefixes.
func oneLine(err error) string {
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "yaml: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.Join(strings.Fields(text), " ")
}
