// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"errors"
	"strings"
)

// FieldError is the rejection of a field in a kubeconfig or in a list of peers. It names the field, the reason and
// an accepted value. Correct the field; a retry does not help. The error never holds the field's value if this value
// may be a secret.
type FieldError struct {
	Field  string // "users[0].user.exec"; empty if it concerns the whole document
	Reason string // why it is rejected
	Accept string // what would be accepted
	Err    error  // the cause; may be nil
}

// Error is one line.
func (e *FieldError) Error() string {
	var b strings.Builder
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Reason)
	if e.Err != nil {
		b.WriteString(": " + strings.ReplaceAll(e.Err.Error(), "\n", " "))
	}
	if e.Accept != "" {
		b.WriteString("; accepted: " + e.Accept)
	}
	return b.String()
}

// Unwrap returns the cause, if there is one.
func (e *FieldError) Unwrap() error { return e.Err }

// withoutValues removes the values that the YAML parser quotes in its errors, since they may be secrets.
func withoutValues(err error) error {
	text := err.Error()
	for _, around := range [][2]string{{"`", "`"}, {"anchor '", "'"}} {
		before, _, found := strings.Cut(text, around[0])
		if last := strings.LastIndex(text, around[1]); found && last > len(before) {
			text = before + "(a value)" + text[last+len(around[1]):]
		}
	}
	return errors.New(text)
}
