// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command quickstart shows Atoll in a second: three API servers become a ring of peers, a name is
// taken in all of them, a rival is refused, a coordinator is killed in the middle of its work and
// recovered from its log, and a request finds its region.
//
//	go run ./examples/quickstart
//
// The peers are API servers in the memory of the program, reached over TLS on loopback. To use real
// API servers, pass their kubeconfigs:
//
//	go run ./examples/quickstart -kubeconfig eu-west=eu.yaml -kubeconfig us-east=us.yaml
//
// On real peers each run uses another name for the account, and removes all its objects at the end,
// also when a step fails. The types and the PeerSets stay: they make the peers a ring.
//
// The exit code is 0 if every step succeeded, 1 if one did not, and 2 for wrong arguments. Begin
// reading at story.go.
package main
