// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package boxtest provides a box between a coordinator and an API server: an HTTP/2 proxy with TLS
// that forwards requests, counts them, and injects the faults of networks, load balancers and
// overloaded API servers into chosen requests.
//
// The box never invents an answer about an object. It withholds or delays requests and answers,
// answers 429, 500 or 504, resets streams and connections, and sends GOAWAY.
package boxtest
