// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

// Inherited returns those of a parent's labels or annotations that its shards get: all but those of
// this module, and those by which kubectl and GitOps tools mark the objects that they own. It returns
// a copy, which is nil if of is nil.
func Inherited(of map[string]string) map[string]string { return inherited(of) }
