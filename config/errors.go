// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ForeignCRDError says that a CRD of one of our names exists that this module
// did not install: it has no label SchemaVersionLabel with a number. Look at
// Diff; if nobody needs the other one, install with InstallOptions.Override.
type ForeignCRDError struct {
	// Name is the CRD's name.
	Name string
	// Diff says how the present spec (-) differs from ours (+), a field per
	// line. It is empty if they are equal.
	Diff string
}

// Error names the CRD, says what to do, and shows the difference.
func (e *ForeignCRDError) Error() string {
	diff := "\n" + e.Diff
	if e.Diff == "" {
		diff = " its spec is the same as ours"
	}
	return fmt.Sprintf("CRD %s exists and has no valid label %s, so other software installed it: remove it, or override it if nobody needs it;%s",
		e.Name, SchemaVersionLabel, diff)
}

// NewerCRDError says that a newer release of this module has installed the CRD.
// Use that release, or a later one, to install.
type NewerCRDError struct {
	Name    string // of the CRD
	Present string // its schema version
	Ours    string // the schema version of this release
}

// Error names the CRD and both versions.
func (e *NewerCRDError) Error() string {
	return fmt.Sprintf("CRD %s has schema version %s, this release has %s: install with the newer release, going back would drop fields",
		e.Name, e.Present, e.Ours)
}

// failed says what could not be done with a CRD, and what rights would help.
func failed(verb, name string, err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s CRD %s: %w; installing needs the verbs get, create, patch and update on customresourcedefinitions.apiextensions.k8s.io, as in a ClusterRole bound to this user",
			verb, name, err)
	}
	return fmt.Errorf("%s CRD %s: %w", verb, name, err)
}
