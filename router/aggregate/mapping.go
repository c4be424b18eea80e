// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

// Mapping returns the type of region k that corresponds to a common type, and whether region k has the type at all.
// Both types have the same resource name; group and version may differ.
type Mapping func(common schema.GroupVersionResource, k region.Key) (schema.GroupVersionResource, bool)

// ByProvider returns the Mapping for types that each region has in a group of its own: with "loodse" among providers,
// couchdbs.loodse maps to couchdbs.eu-west-1.loodse in region eu-west-1.loodse, to couchdbs.eu-east-1.loodse in
// eu-east-1.loodse, and to nothing in regions of other providers. Types of other groups are the same everywhere.
func ByProvider(providers ...string) Mapping {
	return func(common schema.GroupVersionResource, k region.Key) (schema.GroupVersionResource, bool) {
		if !slices.Contains(providers, common.Group) {
			return common, true
		}
		regional := common
		regional.Group = k.String()
		return regional, k.Provider == common.Group
	}
}
