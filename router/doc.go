// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package router says which peer serves a region, and gives clients that go straight to that peer as a given caller.
//
//	eu, err := routes.Client(region.Key{Provider: "loodse", Name: "eu-west-1"}, router.Caller(token))
//	...
//	list, err := eu.Dynamic().Resource(couchdbs).Namespace("acme").List(ctx, metav1.ListOptions{})
//
// A look-up is answered by the first of these that knows the region: the Directory's present Snapshot; what the Resolver
// said, to this process or, by the Cache, to an earlier one; the Resolver, asked now. Nothing stands in for a region: if
// its peer does not answer, neither does anything else.
//
// Guaranteed:
//   - There is no default identity. Every client has one of Self, Caller and Impersonate; the zero Identity, an empty user
//     name, and a user or group that Options refuse are errors (ErrIdentity). Headers of a request that claim another
//     identity are removed, whoever set them.
//   - A caller's token never travels on a connection that has the library's client certificate.
//   - The peer is found anew for each request, so a Client outlives moves of its region and rotations of credentials.
//     Once the region has moved, open watches end, and a list or watch from a resourceVersion of the old peer gets
//     410 Gone, so that informers list anew instead of mixing two histories.
//   - Look-ups of known regions take no lock, do not allocate and do no I/O. An answer that is not of now says so: Route.At.
//   - Unknown (region.ErrUnknownRegion), unreachable (region.ErrUnavailable) and forbidden (apierrors.IsForbidden) are
//     three errors. That a Resolver or a peer does not answer never becomes "unknown", and takes no route away.
//   - The caller's 401 and 403 are the peer's answers to the caller. A peer that refuses the router's own credentials, or to
//     let them impersonate, is ErrCredentials.
//   - A region takes no more of this process than its Budget, whatever its peer and those who ask do.
//
// Not guaranteed:
//   - That the peer answers, or that a route from Resolver or Cache still holds.
//   - That a token or a user means the same in two peers: each peer authenticates and authorizes by itself. See CallerAt
//     and Options.Map.
//   - Fairness among those who use one region: it has one queue.
//   - Anything about upgraded streams (exec, attach, port-forward) beyond StreamConfig and BeginStream.
package router
