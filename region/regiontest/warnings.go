// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// warnOfFinalizers warns about finalizers that o adds to old and that other clients may use too.
func (c *call) warnOfFinalizers(o, old object) {
	if !c.resource.custom() {
		return
	}
	var added []string
	for _, f := range finalizers(o) {
		if old == nil || !slices.Contains(finalizers(old), f) {
			added = append(added, text(f))
		}
	}
	slices.Sort(added)
	for _, name := range slices.Compact(added) {
		for _, msg := range validation.IsQualifiedName(name) {
			c.warnings = append(c.warnings, fmt.Sprintf("metadata.finalizers: %q: %s", name, msg))
		}
		switch {
		case strings.Contains(name, "/"), name == "orphan", name == "foregroundDeletion", name == "kubernetes":
		case strings.Contains(name, "."):
			c.warnings = append(c.warnings, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers", name))
		default:
			c.warnings = append(c.warnings, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", name))
		}
	}
}
