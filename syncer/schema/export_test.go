// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

// BriefLength is the length of values in texts.
const BriefLength = briefLength

// NodeLimit is the limit of parts in a type.
const NodeLimit = nodeLimit

// Below is the func below.
func Below(path, whole string) bool { return below(path, whole) }
