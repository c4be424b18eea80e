// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// codeAndReason returns code and reason of err, for cases in which the message does not matter.
func codeAndReason(err error) string {
	if err == nil {
		return "OK"
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return fmt.Sprintf("%T", err)
	}
	return fmt.Sprintf("%d %s", status.Status().Code, status.Status().Reason)
}

func schemaOf(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// continueOf returns the continue token in the error of an expired list, or "" without a token.
func continueOf(err error) string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

func itoa(n int) string { return fmt.Sprint(n) }
