// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package router finds the peer that serves a region, and provides clients that send a given caller's requests
// directly to that peer.
//
//	eu, err := routes.Client(region.Key{Provider: "loodse", Name: "eu-west-1"}, router.Caller(token))
//	...
//	list, err := eu.Dynamic().Resource(couchdbs).Namespace("acme").List(ctx, metav1.ListOptions{})
//
// A look-up uses the first of these that knows the region: (1) the Directory's present Snapshot; (2) an earlier answer
// of the Resolver to this process, or a route that the Cache has kept; (3) a new question to the Resolver. There is no
// fallback peer: if the region's peer does not answer, the request fails.
//
// Guaranteed:
//   - There is no default identity. Every client has one of Self, Caller and Impersonate; the zero Identity, an
//     empty user name, and a user or group that Options refuse are errors (ErrIdentity). Request headers that claim
//     another identity are removed, whatever their origin.
//   - A caller's token never travels on a connection that has the library's client certificate.
//   - The peer is looked up for each request, so a Client survives moves of its region and rotations of
//     credentials. After a move, open watches end, and a list or watch from a resourceVersion of the old peer gets
//     410 Gone, so that informers list again instead of mixing two histories.
//   - Look-ups of known regions take no lock, do not allocate and do no I/O, with the two exceptions that Router
//     names. Route.At dates an answer that may be stale.
//   - Unknown (region.ErrUnknownRegion), unreachable (region.ErrUnavailable) and forbidden (apierrors.IsForbidden)
//     are three different errors. A Resolver or peer that does not answer never makes a region unknown, and removes
//     no route.
//   - A 401 or 403 that reaches the caller is the peer's answer to the caller. If a peer refuses the router's own
//     credentials, or does not let them impersonate, the error is ErrCredentials.
//   - The requests of a Router's Clients to one region stay within the region's Budget, whatever the peer and the
//     callers do.
//
// Not guaranteed:
//   - That the peer answers, or that a route from Resolver or Cache is still valid.
//   - That a token or a user means the same in two peers: each peer authenticates and authorizes by itself. See
//     CallerAt and Options.Map.
//   - Fairness between the callers of one region: they share one queue.
//   - Any property of upgraded streams (exec, attach, port-forward) beyond those of StreamConfig and BeginStream.
package router
