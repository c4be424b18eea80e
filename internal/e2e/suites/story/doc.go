// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package story runs an installation as operators would, from the manifests alone: two gateways, two managers, three
// regions and a central plane, under the load of many users, while parts of it are rotated, restarted, killed and removed.
package story
