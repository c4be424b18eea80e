// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// State is the outcome of a call in one region.
type State string

const (
	// OK means that the region answered.
	OK State = "OK"
	// Empty means that the region answered, with no objects.
	Empty State = "Empty"
	// NotServed means that the region's API server does not serve the type.
	NotServed State = "NotServed"
	// Unauthorized means that the region does not accept the caller's credentials.
	Unauthorized State = "Unauthorized"
	// CredentialsRefused means that the region does not accept the credentials of this program, or does not let it
	// act as the caller (router.ErrCredentials).
	CredentialsRefused State = "CredentialsRefused"
	// Forbidden means that the region does not allow the call.
	Forbidden State = "Forbidden"
	// Expired means that the region no longer has the resourceVersion.
	Expired State = "Expired"
	// Refused means that the region refused the call for another reason.
	Refused State = "Refused"
	// Timeout means that the region did not answer in time.
	Timeout State = "Timeout"
	// Unreachable means that the region could not be reached.
	Unreachable State = "Unreachable"
	// Canceled means that the call was canceled, because another region had failed.
	Canceled State = "Canceled"
	// Failed means that the region answered with a server error.
	Failed State = "Failed"
	// TooLarge means that the region's answer has more bytes than Options.MaxAnswer.
	TooLarge State = "TooLarge"
	// Busy means that Options.Budget is used up.
	Busy State = "Busy"
	// Absent means that the region is not part of the first page of a list, and therefore not of later pages.
	Absent State = "Absent"
)

func (s State) answered() bool { return s == OK || s == Empty || s == NotServed }

// refused reports whether the region refused the call, so that a retry fails until something else changes.
func (s State) refused() bool {
	return s == NotServed || s == Unauthorized || s == Forbidden || s == Refused
}

var (
	errCanceled = errors.New("not waited for")
	errNotAsked = errors.New("not asked")
)

// stateOf classifies the error of a region's client.
func stateOf(err error) State {
	if limit, ok := errors.AsType[*limitError](err); ok {
		return limit.state
	}
	if status, ok := statusIn(err); ok {
		switch code := status.Code; {
		case code == http.StatusUnauthorized:
			return Unauthorized
		case code == http.StatusForbidden:
			return Forbidden
		case code == http.StatusNotFound:
			return NotServed
		case code == http.StatusGone:
			return Expired
		case code == http.StatusGatewayTimeout:
			return Timeout
		case code >= http.StatusInternalServerError, code == http.StatusTooManyRequests:
			return Failed
		default:
			return Refused
		}
	}
	var timeout interface{ Timeout() bool }
	switch {
	case err == nil:
		return OK
	case errors.Is(err, errNotAsked):
		return Unreachable
	case errors.Is(err, errCanceled):
		return Canceled
	case errors.Is(err, router.ErrCredentials):
		return CredentialsRefused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	default:
		return Unreachable
	}
}

// Outcome is the result of a call in one region.
type Outcome struct {
	Region  region.Key
	State   State
	Items   int   // the number of objects that the region contributed
	Err     error // for operators: it may name peers and addresses, which the texts of Error and PartialError do not
	Elapsed time.Duration
}

// text returns the region and the state, but no peer. It truncates the region's own message, since the region may
// be hostile.
func (o Outcome) text() string {
	if limit, ok := errors.AsType[*limitError](o.Err); ok {
		return fmt.Sprintf("region %s: %s: %s", o.Region, o.State, limit.text)
	}
	if status, ok := statusIn(o.Err); ok && o.State != Failed {
		return fmt.Sprintf("region %s: %s: %s", o.Region, o.State, printable(status.Message))
	}
	if o.State == CredentialsRefused {
		return fmt.Sprintf("region %s: %s: it does not accept those of this gateway", o.Region, o.State)
	}
	return fmt.Sprintf("region %s: %s", o.Region, o.State)
}

// Error is the failure of a call to one region. It is an apierrors.APIStatus with the region's own status, or 503.
// Handle it as the error of an API server: retry later on 503. Its text names no peer.
type Error struct{ Outcome }

// Error returns one line of text.
func (e *Error) Error() string { return e.text() }

// Unwrap returns the region's own error, which may name peers.
func (e *Error) Unwrap() error { return e.Err }

// Status returns the region's own status, or 503.
func (e *Error) Status() metav1.Status {
	if status, ok := statusIn(e.Err); ok {
		return status
	}
	return unavailable(e.text())
}

// statusIn returns the status with which the region's API server answered the request. It ignores a status inside a
// *region.Error, which is a failure before that answer: such a status belongs to another request, for instance the
// one for the identity of a peer's cluster.
func statusIn(err error) (metav1.Status, bool) {
	var way *region.Error
	var status apierrors.APIStatus
	if !errors.As(err, &way) && errors.As(err, &status) {
		return status.Status(), true
	}
	return metav1.Status{}, false
}

func unavailable(message string) metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: message,
	}
}

// wrap returns err as an *Error of region k.
func wrap(k region.Key, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Outcome{Region: k, State: stateOf(err), Err: err}}
}

// PartialError means that the regions' answers do not meet the policy, or that no region listed its objects. Retry
// later, or pass a Policy that needs fewer regions (WithPolicy). It is an apierrors.APIStatus: the common status if
// every region failed with the same code, and 503 otherwise. So apierrors.IsNotFound is true only if every region
// answered NotFound.
type PartialError struct {
	Op       string
	Outcomes []Outcome // of all regions
	policy   Policy
	wrote    bool // some regions may have carried out a write
}

// Error returns one line that names regions that failed, at most 20, and no peers.
func (e *PartialError) Error() string {
	failures := failuresOf(e.Outcomes)
	switch {
	case len(e.Outcomes) == 0:
		return e.Op + ": no regions are known here"
	case len(failures) == 0:
		return fmt.Sprintf("%s: %d regions answered, which does not meet %s", e.Op, len(e.Outcomes), e.policy)
	default:
		failed := countRegions(e.Outcomes, func(o Outcome) bool { return o.Err != nil })
		all := countRegions(e.Outcomes, func(Outcome) bool { return true })
		return fmt.Sprintf("%s: %d of %d regions failed: %s", e.Op, failed, all, strings.Join(shorten(failures), "; "))
	}
}

// countRegions counts the regions of the outcomes that match. A list of several types has several outcomes of a region.
func countRegions(outcomes []Outcome, match func(Outcome) bool) int {
	regions := map[region.Key]bool{}
	for _, o := range outcomes {
		if match(o) {
			regions[o.Region] = true
		}
	}
	return len(regions)
}

// WrappedErrors returns an *Error for each region that failed.
func (e *PartialError) WrappedErrors() []error {
	var errs []error
	for _, o := range e.Outcomes {
		if o.Err != nil {
			errs = append(errs, &Error{o})
		}
	}
	return errs
}

// retryAfter is the delay in seconds that a 503 suggests. Clients such as client-go then repeat the request a few times,
// so the delay is short: a person may be waiting.
const retryAfter = 1

// Status returns the status with which an HTTP server should answer. A 503 suggests to repeat the request, unless it is a
// write that some regions may have carried out.
func (e *PartialError) Status() metav1.Status {
	var common metav1.Status
	for i, o := range e.Outcomes {
		status, ok := statusIn(o.Err)
		if !ok || i > 0 && status.Code != common.Code {
			return e.unavailable()
		}
		common = status
	}
	if len(e.Outcomes) == 0 {
		return e.unavailable()
	}
	common.Message = e.Error()
	return common
}

func (e *PartialError) unavailable() metav1.Status {
	status := unavailable(e.Error())
	if !e.wrote {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	}
	return status
}

// Report collects the outcomes, by region, of all calls with the context of WithReport. It is safe for concurrent
// use.
type Report struct {
	mu       sync.Mutex
	outcomes []Outcome
}

type reportKey struct{}

// WithReport returns a context for one or more calls, and the Report that collects their outcomes.
func WithReport(ctx context.Context) (context.Context, *Report) {
	r := &Report{}
	return context.WithValue(ctx, reportKey{}, r), r
}

func (r *Report) add(outcomes []Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes = append(r.outcomes, outcomes...)
}

// Outcomes returns all outcomes, in the order of the calls.
func (r *Report) Outcomes() []Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.outcomes)
}

// Complete reports whether no region failed. A region that does not serve the type has not failed.
func (r *Report) Complete() bool {
	return !slices.ContainsFunc(r.Outcomes(), func(o Outcome) bool { return !o.State.answered() })
}

// Warnings returns texts for people, and for Warning headers: one for each region that did not contribute. They
// name no peer. There are at most 20 texts, of 4 KiB together; one more text counts the regions that do not fit.
func (r *Report) Warnings() []string { return shorten(failuresOf(r.Outcomes())) }
