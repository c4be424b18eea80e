// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config has the configuration of the manager: one file, in YAML or JSON.
//
//	apiVersion: manager.atoll.dev/v1alpha1
//	kind: ManagerConfiguration
//	serviceClusters:
//	  denyAddresses: [10.96.0.0/12]
//
// # Guaranteed
//
//   - Load returns every error of the file at once. Each error is a line with the path of the field, the reason, and what
//     would be accepted. Unknown fields, and fields that are given twice, are errors.
//   - A field that is not set has the default that its comment names. A file with apiVersion and kind alone is complete.
//
// # Not guaranteed
//
//   - That files that the configuration names exist: the manager reads them when it starts.
package config
