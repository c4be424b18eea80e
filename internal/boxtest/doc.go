// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package boxtest is a box between a coordinator and an API server: a server of
// HTTP/2 over TLS that passes requests on, counts them, and lets chosen ones meet
// what networks, load balancers and API servers under stress do to requests.
//
// The box never invents an answer about an object: it withholds requests and
// answers, delays them, answers that it does not know (429, 500, 504), resets
// streams and connections, and sends GOAWAY.
package boxtest
