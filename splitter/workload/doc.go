// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload reads declarations of types of workloads: v1alpha1.WorkloadType. A declaration has the paths of the
// replicas, pod templates, references and status of a type. The splitter, the placement controller and the syncer read
// the same declaration by this package, so that they agree on the type.
//
// The declarations of the types of Kubernetes are part of the package: see Builtin.
//
// # Guaranteed
//
//   - All functions are pure: no I/O, no clock, arguments are not modified.
//   - Compile returns every fault of a declaration at once. Each has the field of the declaration, the reason, and what
//     would be accepted.
//   - A Type never panics, whatever object it reads. A field with another type than declared counts as absent.
//   - The cost is bounded: a path has at most 16 steps, a declaration at most a fixed number of paths, and
//     reading one path of an object visits at most MaxVisits values.
//
// # Not guaranteed
//
//   - That objects of the type have the declared fields: nothing here reads a schema.
package workload
