// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is how a CRD in an API server compares with that of this release. See StateOf.
type State int

const (
	// Missing: the API server does not have the CRD.
	Missing State = iota
	// Foreign: other software installed the CRD, because it has no schema version.
	Foreign
	// Newer: a newer release installed the CRD.
	Newer
	// Deleting: the CRD is being deleted.
	Deleting
	// Rejected: the API server has not accepted the CRD, or not yet.
	Rejected
	// Differs: the CRD has an older schema version, or another spec.
	Differs
	// Same: the CRD is served as this release has it.
	Same
)

// StateOf compares present, a CRD as an API server has it or nil, with ours, an element of CRDs. It ignores the API
// server's defaults. It is pure.
func StateOf(present, ours *unstructured.Unstructured) State {
	if present == nil {
		return Missing
	}
	version, ok := schemaVersion(present)
	own, _ := schemaVersion(ours)
	accepted, err := established(present)
	switch {
	case present.GetDeletionTimestamp() != nil:
		return Deleting
	case !ok:
		return Foreign
	case version > own:
		return Newer
	case err != nil || !accepted:
		return Rejected
	case version < own || !reflect.DeepEqual(defaulted(present), defaulted(ours)):
		return Differs
	}
	return Same
}
