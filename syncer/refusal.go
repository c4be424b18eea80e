// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// retryRefused is when what the downstream did not accept is sent again, although nothing has changed.
	retryRefused = 10 * time.Minute
	// retryStatus is the same for a status, which changes often enough by itself.
	retryStatus = time.Hour
)

// refusal is a write that a server did not accept.
type refusal struct {
	hash  string    // of what was written
	state string    // what was there instead: a resourceVersion, or of what a status was refused, a generation
	until time.Time // when it is tried again
	why   string    // only of a status
}

// anyState in a refusal says that it does not matter what is there.
const anyState = "any"

// holds returns how long the write of hash to what has state need not be tried; 0: it is to be.
func (r refusal) holds(hash, state string) time.Duration {
	if r.hash != hash || r.state != state && r.state != anyState {
		return 0
	}
	return max(0, time.Until(r.until))
}

// refusesStatus says whether err is the refusal of a status, not one of the request, or no answer.
func refusesStatus(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) || isSchemaError(err) ||
		apierrors.IsForbidden(err) && !isMissingRight(err) && !isNotReady(err)
}

// isNotReady says whether admission has forbidden a request because it has just begun and does not know all that it needs.
// It says so of any request.
func isNotReady(err error) bool {
	return strings.Contains(err.Error(), "not yet ready to handle request")
}

// isMissingRight says whether a request was forbidden for who made it, in the words of all authorizers, and not by
// admission, for what is in it.
func isMissingRight(err error) bool { return strings.Contains(err.Error(), `forbidden: User "`) }

// showRefusal says whether a side does not accept the status of an object.
func (l *lane) showRefusal(ctx context.Context, key types.NamespacedName) {
	m := l.memo(key)
	if why := cmp.Or(m.statusUp.why, m.statusDown.why); why != "" {
		l.problem(ctx, key, ReasonStatusRefused, why)
		return
	}
	l.problem(ctx, key, "", "")
}
