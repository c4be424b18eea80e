// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// errNotServed says that a peer does not know the resource at all, which is not
// the same as not having the object.
var errNotServed = errors.New("the peer does not serve the resource: install its CRD there")

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

// explain turns a peer's error into one that says what to do about it.
func explain(peer region.PeerName, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && !isAbsent(err):
		err = fmt.Errorf("%w (%w)", errNotServed, err)
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%w (the peer must grant the rights that \"atollctl rbac\" prints)", err)
	}
	if _, already := errors.AsType[*region.Error](err); already {
		return err
	}
	return &region.Error{Peer: peer, Op: op, Err: err}
}
