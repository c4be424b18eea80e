// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Operation, the API type of group fanout.atoll.dev that
// keeps one entry of a log in a central plane. Package wal/kubelog reads and
// writes it. The other types of the group are in fanout/v1alpha1.
//
// The package does no I/O.
//
// The schema guarantees, once an API server serves the CRDs of package config:
// the state of an Operation goes only forward, and what identifies it cannot be
// changed, whichever client writes. It does not guarantee that a coordinator is
// the only one that works on an operation: package fanout does.
//
// +kubebuilder:object:generate=true
// +groupName=fanout.atoll.dev
package v1alpha1
