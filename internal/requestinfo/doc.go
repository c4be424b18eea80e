// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requestinfo reads what a request asks of an API server from its method, path and query, by the rules of
// k8s.io/apiserver's RequestInfoFactory: the verb, the resource, and whether the response is long-running.
//
// The code is its own, because that package brings 200 others. The tests compare both on a table and by a fuzz target.
package requestinfo
