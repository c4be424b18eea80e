// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requestinfo determines the meaning of a request to an API server from its method, path
// and query, by the rules of k8s.io/apiserver's RequestInfoFactory: the verb, the resource, and
// whether the response is long-running.
//
// It does not import k8s.io/apiserver, which has 200 dependencies. Tests compare its results with
// those of RequestInfoFactory, for the requests of a table and in a fuzz target.
package requestinfo
