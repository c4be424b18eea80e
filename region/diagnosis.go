// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Diagnosis is a failed request with its cause and its remedy, as one line for a person. Show this line, or decide
// by Cause. Unwrap returns the failure.
type Diagnosis struct {
	Cause  Cause
	Remedy string // what a person can do; omitted if empty
	Err    error

	// Attempts is how many requests failed in a row, the first of them at Since; zero or one for a single request.
	Attempts int
	Since    time.Time
}

// Diagnose returns err as a *Diagnosis, or err itself if its cause is unknown or it holds a Diagnosis already.
func Diagnose(err error) error {
	if _, done := errors.AsType[*Diagnosis](err); done {
		return err
	}
	cause := CauseOf(err)
	if cause == CauseUnknown {
		return err
	}
	return &Diagnosis{Cause: cause, Remedy: cause.Remedy(), Err: err}
}

// Error is the cause, the text of the failure without peer and address, the attempts, and the remedy.
func (d *Diagnosis) Error() string {
	text := essence(d.Err)
	if !strings.Contains(text, string(d.Cause)) {
		text = string(d.Cause) + ": " + text
	}
	if d.Attempts > 1 {
		text += fmt.Sprintf(" (%d attempts since %s)", d.Attempts, d.Since.UTC().Format(time.RFC3339))
	}
	if d.Remedy != "" {
		text += ": " + d.Remedy
	}
	return text
}

// Unwrap returns the failure.
func (d *Diagnosis) Unwrap() error { return d.Err }

// essence removes the wrappers of the client's layers. The caller of Diagnose names peer and operation itself.
func essence(err error) string {
	for {
		switch e := err.(type) { //nolint:errorlint // one layer at a time
		case *Error:
			err = e.Err
		case *url.Error:
			err = e.Err
		case *unavailable:
			err = e.err
		default:
			return err.Error()
		}
	}
}

// unavailable is the error of a request that got no response.
type unavailable struct{ err error }

func (e *unavailable) Error() string   { return ErrUnavailable.Error() + ": " + e.err.Error() }
func (e *unavailable) Unwrap() []error { return []error{ErrUnavailable, e.err} }

// timeout is the error of a request that timed out, with the stage that the request reached.
type timeout struct {
	cause Cause
	err   error
}

func (e *timeout) Error() string { return string(e.cause) + ": " + e.err.Error() }
func (e *timeout) Unwrap() error { return e.err }
func (e *timeout) Timeout() bool { return true }

// Temporary makes timeout a net.Error, like context.DeadlineExceeded.
func (e *timeout) Temporary() bool { return true }
