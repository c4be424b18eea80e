// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

// Mapping says which type of a region stands behind a common type, and whether the region takes part at all. The names of
// both types are the same; group and version may differ.
type Mapping func(common schema.GroupVersionResource, k region.Key) (schema.GroupVersionResource, bool)

// ByProvider is the Mapping of types that each region has in a group of its own: with "loodse" among providers,
// couchdbs.loodse stands for couchdbs.eu-west-1.loodse in region eu-west-1.loodse, couchdbs.eu-east-1.loodse in
// eu-east-1.loodse, and nothing in regions of other providers. Types of other groups are the same everywhere.
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
