// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance is the one list of what an API server does that the packages of this module rely on. The server in
// memory of package regiontest and a real kube-apiserver are judged by the same cases.
//
// A case states facts: what was observed, and what a real server of Kubernetes 1.36 answers. Differences is the only
// place where the server in memory may deviate, with the reason; an undeclared difference fails, and so does a declared
// one that is not there.
//
// The list does not cover everything that an API server does. What it does not state, regiontest does not promise.
package conformance
