// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// everywhere reports whether every Active replica in a member has at least revision n. It is about
// the object whose claim names operation, and returns true if this object is being removed or gone.
func (w *world) everywhere(operation string, n int64) bool {
	if !slices.ContainsFunc(w.store.cells, func(c cell) bool {
		return c.obj != nil && c.obj.Primary(w.cfg.mode) && c.obj.Committed() && c.obj.Claim.Operation == operation
	}) {
		return true
	}
	for i, c := range w.store.cells {
		if x := c.obj; !w.outsider(i) && x != nil && x.Claim.Operation == operation && x.Stage == Active && x.Revision.Number < n {
			return false
		}
	}
	return true
}
