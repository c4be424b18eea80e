// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance is the list of the API server behavior that the packages of this module rely on. The server in memory
// of package regiontest and a real kube-apiserver are tested with the same cases.
//
// A case asserts facts. Each compares an observed result with that of a real server of Kubernetes 1.36. Only differences.go may list
// deviations of the server in memory, with their reasons; an undeclared deviation fails, and so does a declared one that
// does not occur.
//
// The list does not cover everything that an API server does. regiontest does not promise behavior outside the list.
package conformance
