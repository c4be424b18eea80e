// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/atoll-dev/atoll/router/aggregate"
)

func header(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
}

// warn sets headers, which kubectl prints, with the names of the regions that are missing in the answer.
func warn(w http.ResponseWriter, report *aggregate.Report) {
	for _, text := range report.Warnings() {
		addWarning(w, text)
	}
}

func addWarning(w http.ResponseWriter, text string) {
	if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil { // it only fails for control characters
		w.Header().Add("Warning", header)
	}
}

// refuse answers with the status of an API error, or without details for any other error.
func refuse(w http.ResponseWriter, err error) {
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
	header(w, int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}
