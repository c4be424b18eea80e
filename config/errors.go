// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ForeignCRDError reports a CRD with one of our names that this module did not
// install: the CRD has no label SchemaVersionLabel with a number. Look at Diff; if
// the other CRD is not needed, install with InstallOptions.Override.
type ForeignCRDError struct {
	// Name is the CRD's name.
	Name string
	// Diff contains the differences between the present spec (-) and ours (+),
	// one field per line. It is empty if they are equal.
	Diff string
}

// Error returns the CRD, the remedy, and the difference.
func (e *ForeignCRDError) Error() string {
	diff := "\n" + e.Diff
	if e.Diff == "" {
		diff = " its spec is the same as ours"
	}
	return fmt.Sprintf("CRD %s exists and has no valid label %s, so other software installed it: remove it, or override it if it is not needed;%s",
		e.Name, SchemaVersionLabel, diff)
}

// NewerCRDError means that a newer release of this module has installed the
// CRD. Install with that release, or a later one.
type NewerCRDError struct {
	Name    string // of the CRD
	Present string // its schema version
	Ours    string // the schema version of this release
}

// Error returns the CRD and both versions.
func (e *NewerCRDError) Error() string {
	return fmt.Sprintf("CRD %s has schema version %s, this release has %s: install with the newer release, going back would drop fields",
		e.Name, e.Present, e.Ours)
}

// failed wraps the error of a request for a CRD. If the API server did not permit
// the request, it adds the required rights.
func failed(verb, name string, err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s CRD %s: %w; installing needs the verbs get, create, patch and update on customresourcedefinitions.apiextensions.k8s.io, as in a ClusterRole bound to this user",
			verb, name, err)
	}
	return fmt.Errorf("%s CRD %s: %w", verb, name, err)
}
