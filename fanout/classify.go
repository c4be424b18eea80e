// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// classify says what is known of a write that was answered with err.
func classify(attempt *region.Attempt, err error) (protocol.Class, protocol.Code) {
	if err == nil {
		return protocol.Applied, protocol.OK
	}
	code := statusCode(err)
	switch {
	case attempt.Repeated():
		// What was answered is the repetition; what was repeated may have had
		// its effect.
		return protocol.Unknown, protocol.Unavailable
	case code == 0 && attempt.Sent():
		return protocol.Unknown, protocol.Unavailable
	case code == 0:
		return protocol.NotApplied, protocol.Unavailable
	case apierrors.IsAlreadyExists(err):
		return protocol.NotApplied, protocol.Exists
	case code == http.StatusConflict:
		return protocol.NotApplied, protocol.Conflict
	case isAbsent(err):
		return protocol.NotApplied, protocol.NotFound
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return protocol.Unknown, protocol.Unavailable
	default:
		return protocol.NotApplied, protocol.Denied
	}
}

// classifyRead says how a read was answered.
func classifyRead(err error) protocol.Code {
	if err == nil {
		return protocol.OK
	}
	code := statusCode(err)
	switch {
	case errors.Is(err, region.ErrUnknownPeer):
		return protocol.NoSuchPeer
	case isAbsent(err):
		return protocol.NotFound
	case code == 0 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return protocol.Unavailable
	default:
		return protocol.Denied
	}
}

// statusCode is the HTTP status of an API server's answer, 0 if there was none.
func statusCode(err error) int32 {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0
	}
	return status.Status().Code
}

// isAbsent says that the object is not there. A 404 of a server that does not
// serve the resource, or of something that is no API server, says nothing about
// the object.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// explain turns a peer's error into one that names the peer, the step, the cause
// and what to do about it. One that does already stays as it is.
func explain(peer region.PeerName, op string, err error) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[*region.Diagnosis](err); done {
		if _, named := errors.AsType[*region.Error](err); named {
			return err
		}
	}
	where := region.Error{Peer: peer, Op: op, Err: err}
	if named, ok := err.(*region.Error); ok { //nolint:errorlint // a client's own has a *url.Error around it
		where = *named
	}
	where.Err = region.Diagnose(where.Err)
	if found, ok := errors.AsType[*region.Diagnosis](where.Err); ok {
		_, wrong := errors.AsType[*WrongPeerError](err)
		switch {
		case wrong:
			found.Remedy = "" // the error has its own
		case found.Cause == region.CauseForbidden:
			found.Remedy = `the peer must grant the rights that "atollctl rbac" prints`
		}
	}
	return &where
}

// unreached is an error of a peer that an operation cannot do without, whatever
// keeps it from doing its part: errors.Is finds region.ErrUnavailable.
type unreached struct{ error }

func (e unreached) Is(target error) bool { return target == region.ErrUnavailable } //nolint:errorlint // a sentinel
func (e unreached) Unwrap() error        { return e.error }
