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

// answer describes the answer to a request that failed.
type answer struct {
	code     int32 // the HTTP status; 0 if there was none
	exists   bool  // the name is taken
	absent   bool  // the object does not exist
	sent     bool  // a part of the request may have been sent
	repeated bool  // the request was sent more than once: the answer is to a repetition
}

func answerOf(attempt *region.Attempt, err error) answer {
	return answer{
		code: statusCode(err), exists: apierrors.IsAlreadyExists(err), absent: isAbsent(err),
		sent: attempt.Sent(), repeated: attempt.Repeated(),
	}
}

// vague returns true if the status code leaves open whether the server applied the request.
func (a answer) vague() bool {
	return a.code == http.StatusTooManyRequests || a.code == http.StatusRequestTimeout || a.code >= http.StatusInternalServerError
}

// ofWrite classifies the answer to a write.
func (a answer) ofWrite() (protocol.Class, protocol.Code) {
	switch {
	case a.repeated:
		// The first of the sent requests may have been applied.
		return protocol.Unknown, protocol.Unavailable
	case a.code == 0 && a.sent:
		return protocol.Unknown, protocol.Unavailable
	case a.code == 0:
		return protocol.NotApplied, protocol.Unavailable
	case a.exists:
		return protocol.NotApplied, protocol.Exists
	case a.code == http.StatusConflict:
		return protocol.NotApplied, protocol.Conflict
	case a.absent:
		return protocol.NotApplied, protocol.NotFound
	case a.vague():
		return protocol.Unknown, protocol.Unavailable
	default:
		return protocol.NotApplied, protocol.Denied
	}
}

// ofRead classifies the answer to a read.
func (a answer) ofRead() protocol.Code {
	switch {
	case a.absent:
		return protocol.NotFound
	case a.code == 0 || a.vague():
		return protocol.Unavailable
	default:
		return protocol.Denied
	}
}

// classify classifies a write that returned err.
func classify(attempt *region.Attempt, err error) (protocol.Class, protocol.Code) {
	if err == nil {
		return protocol.Applied, protocol.OK
	}
	return answerOf(attempt, err).ofWrite()
}

// classifyRead classifies a read that returned err.
func classifyRead(err error) protocol.Code {
	switch {
	case err == nil:
		return protocol.OK
	case errors.Is(err, region.ErrUnknownPeer):
		return protocol.NoSuchPeer
	default:
		return answerOf(new(region.Attempt), err).ofRead()
	}
}

// statusCode returns the HTTP status of an API server's answer, or 0 if there was none.
func statusCode(err error) int32 {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0
	}
	return status.Status().Code
}

// isAbsent reports whether err proves that the object does not exist. A 404 from a server that
// does not serve the resource, or that is no API server, proves nothing about the object.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// explain turns a peer's error into one that names the peer, the step, the cause and the
// remedy. An error that names them already is returned unchanged.
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
	if named, ok := err.(*region.Error); ok { //nolint:errorlint // only the outermost: a client wraps its *region.Error
		where = *named
	}
	where.Err = region.Diagnose(where.Err)
	if found, ok := errors.AsType[*region.Diagnosis](where.Err); ok {
		_, wrong := errors.AsType[*WrongPeerError](err)
		switch {
		case wrong:
			found.Remedy = "" // the WrongPeerError names its own remedy
		case found.Cause == region.CauseForbidden:
			found.Remedy = `the peer must grant the rights that "atollctl rbac" prints`
		}
	}
	return &where
}

// unreached marks the error of a peer that an operation needs. Whatever the cause of the error,
// errors.Is finds region.ErrUnavailable in it.
type unreached struct{ error }

func (e unreached) Is(target error) bool { return target == region.ErrUnavailable } //nolint:errorlint // a sentinel
func (e unreached) Unwrap() error        { return e.error }
