// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observability runs the rules and the queries of deploy/observability in a real Prometheus, which scrapes
// atoll-manager, atoll-gateway and a program with a syncer, a splitter and placement.
package observability
