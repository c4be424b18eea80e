// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ambiguitytest tests coordinators behind a box: a proxy before an API server that disturbs
// one request (see package boxtest). Each call of each operation meets each fault of the box. These
// faults are called ambiguities, because after most of them the coordinator cannot know whether the
// API server has executed the request. The same cases run against API servers in memory and real
// ones.
package ambiguitytest
