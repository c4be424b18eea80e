// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

// differences returns every fact for which the server in memory is known to deviate.
func differences() []difference {
	return []difference{
		{"delete-propagation", "foreground", `404 NotFound: widgets.GROUP "b" not found`, "no garbage collector runs, so the finalizer would never be removed"},
		{"namespace-content", "content right after", `404 NotFound: configmaps "a" not found`, "a deleted namespace is emptied at once, unless Options.KeepNamespaceContent is set"},
		{"job-selector", "selector", nil, "the server in memory runs no Job strategy; a Job keeps the selector that it was given"},
		{"job-selector", "template labels", nil, "as the selector"},
		{"service", "has a cluster address", false, "no addresses are given out"},
	}
}
