// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance is the list of the API server behavior that the packages of this module rely on. The same cases
// test the server in memory of package regiontest and a real kube-apiserver.
//
// A case asserts facts. Each fact compares an observed result with the result of a real server of Kubernetes 1.36. Only
// differences.go may list deviations of the server in memory, with their reasons. A test fails if a deviation is not
// listed there, or if a listed deviation does not occur.
//
// The list does not cover everything that an API server does. regiontest does not promise behavior outside the list.
package conformance
