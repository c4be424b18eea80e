// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// refusal is an error answer that the proxy itself gives.
type refusal struct {
	code    int
	message string
}

func (r refusal) Error() string { return r.message }

// explain returns the answer for the client that corresponds to err. It does not reveal peers,
// addresses or other regions.
func explain(err error) refusal {
	if r, ok := errors.AsType[refusal](err); ok {
		return r
	}
	switch {
	case errors.Is(err, region.ErrUnknownRegion):
		return refusal{http.StatusNotFound, "this region is not served here"}
	case errors.Is(err, router.ErrIdentity):
		return refusal{http.StatusForbidden, "requests cannot be made as this user or one of its groups"}
	case errors.Is(err, router.ErrCredentials):
		return refusal{http.StatusServiceUnavailable, "the region does not accept the credentials of this gateway, or does not let it act as this user; nothing was done, and its operators have to repair it"}
	case errors.Is(err, router.ErrBusy):
		return refusal{http.StatusTooManyRequests, "too many requests are under way to this region"}
	case errors.Is(err, context.DeadlineExceeded):
		return refusal{http.StatusGatewayTimeout, "the region did not answer in time; if this was a write, it may have had an effect"}
	case errors.Is(err, region.ErrUnavailable), errors.Is(err, region.ErrUnknownPeer):
		return refusal{http.StatusServiceUnavailable, "the region is known and cannot be reached; if this was a write, it may have had an effect"}
	default:
		return refusal{http.StatusBadGateway, "the region gave no answer that can be handed on; if this was a write, it may have had an effect"}
	}
}

// busy returns the refusal for a request that the bound at level l does not admit.
func busy(l level) refusal {
	what := "too many requests are under way here"
	switch l {
	case byFlow:
		what = "too many of your requests are under way to this region"
	case byCaller:
		what = "too many of your requests are under way here"
	case byRegion:
		what = "too many requests are under way to this region"
	}
	return refusal{http.StatusTooManyRequests, what + "; try again later"}
}

var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
	http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout: metav1.StatusReasonTimeout, http.StatusRequestTimeout: metav1.StatusReasonTimeout,
}

// refuse answers with a Status that describes err, as API servers do.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, e *Event, err error) {
	e.Err = err
	if errors.Is(err, router.ErrCredentials) {
		p.log(r).Error(err, "A peer refuses the gateway itself: repair its credentials there, or their right to impersonate", "audit", e.AuditID)
	}
	limitBody(w, r, p.limits.Body)
	answer := p.guards.explain(err)
	e.Code = answer.code
	if r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), errStalled) {
		e.Code = 0 // the client has disconnected
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(answer.code), Reason: reasons[answer.code], Message: answer.message,
	}
	h := w.Header()
	if answer.code == http.StatusTooManyRequests || answer.code == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	}
	body, _ := json.Marshal(status) // cannot fail: the Status is plain data
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Audit-Id", e.AuditID)
	w.WriteHeader(answer.code)
	_, _ = bytes.NewReader(body).WriteTo(w)
}
