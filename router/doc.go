// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package router says which peer serves a region, and gives clients that go straight to that peer as a given caller.
//
//	eu, err := routes.Client(region.Key{Provider: "loodse", Name: "eu-west-1"}, router.Caller(token))
//	...
//	list, err := eu.Dynamic().Resource(couchdbs).Namespace("acme").List(ctx, metav1.ListOptions{})
//
// Guaranteed:
//   - There is no default identity. Every client has one of Self, Caller and Impersonate; the zero Identity, an empty user
//     name and a group that Options.Groups refuses are errors. Headers of a request that claim another identity are
//     removed, whoever set them.
//   - A caller's token never travels on a connection that has the library's client certificate.
//   - The peer is found anew for each request, so a Client outlives moves of its region and rotations of credentials.
//     Once the region has moved, open watches end, and a list or watch from a resourceVersion of the old peer gets
//     410 Gone, so that informers list anew instead of mixing two histories.
//   - Look-ups take no lock, do not allocate and do no I/O.
//
// Not guaranteed:
//   - That the peer answers. An unreachable peer is region.ErrUnavailable, never NotFound.
//   - That a token or a user means the same in two peers: each peer authenticates and authorizes by itself.
//   - Anything about upgraded streams (exec, attach, port-forward) beyond StreamConfig.
package router
