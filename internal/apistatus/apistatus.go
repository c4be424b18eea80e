// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apistatus

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Header writes the header of an answer in JSON.
func Header(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
}

// Refuse answers with the status of an API error, or without details for any other error.
func Refuse(w http.ResponseWriter, err error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "this failed here"}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	if status.Code < http.StatusBadRequest || status.Code > 599 {
		status.Code = http.StatusInternalServerError // a region may send any code, and net/http panics on invalid ones
	}
	status.APIVersion, status.Kind = "v1", "Status"
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	Header(w, int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}
