// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/atoll-dev/atoll/router/aggregate"
)

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
