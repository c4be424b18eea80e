// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// details returns the details of an API server's error; nil if it has none.
func details(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Details
	}
	return nil
}

func causes(err error) []metav1.StatusCause {
	if d := details(err); d != nil {
		return d.Causes
	}
	return nil
}

// conflicts returns the fields in err that conflict with another field manager, each as "field: conflict with
// manager". err is the error of an apply without force.
func conflicts(err error) []string {
	var fields []string
	for _, cause := range causes(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			fields = append(fields, cause.Field+": "+cause.Message)
		}
	}
	return fields
}

// isStale reports whether err is a Conflict that names no other field manager: the request had an old resourceVersion
// or UID, because a cache was stale.
func isStale(err error) bool { return apierrors.IsConflict(err) && len(conflicts(err)) == 0 }

// isAbsent reports whether err means that the object does not exist. The NotFound of a server that does not serve
// the type does not count.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}

// isSchemaError reports whether an apply failed because the server's schema lacks a field, or has another type for the
// field. The field may be in the applied content. It may also be in the stored object, if an older schema allowed it.
func isSchemaError(err error) bool {
	return apierrors.IsInternalError(err) &&
		(strings.Contains(err.Error(), "failed to create typed patch object") || strings.Contains(err.Error(), "failed to create typed live object"))
}

// isUnanswered reports whether err leaves open if the server has carried out, or will carry out, the request.
func isUnanswered(err error) bool {
	var status apierrors.APIStatus
	return err != nil && (!errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError)
}

// isMissingNamespace reports whether a request failed because the namespace does not exist.
func isMissingNamespace(err error, namespace string) bool {
	d := details(err)
	return namespace != "" && apierrors.IsNotFound(err) && d != nil && d.Kind == "namespaces" && d.Name == namespace
}

// isRejected reports whether err means that a server rejects an object for its content.
func isRejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) || isSchemaError(err)
}

// isRejectedStatus reports whether err means that a server rejects a status for its content, or that admission forbids
// the status.
func isRejectedStatus(err error) bool {
	return isRejected(err) || apierrors.IsForbidden(err) && !isMissingRight(err) && !isNotReady(err)
}

// isNotReady reports whether admission forbade a request only because the server has just started. Such a request may
// succeed later.
func isNotReady(err error) bool {
	return strings.Contains(err.Error(), "not yet ready to handle request")
}

// isMissingRight reports whether a request was forbidden because its user lacks a right, and not by admission. With
// every authorizer, the message contains the words that isMissingRight looks for.
func isMissingRight(err error) bool { return strings.Contains(err.Error(), `forbidden: User "`) }
