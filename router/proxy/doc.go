// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy serves many regions at one address: an http.Handler that sends each request directly to the API
// server of its region, as the caller.
//
//	gateway, err := proxy.New(routes, authenticate, proxy.Options{})
//	...
//	server := &http.Server{Handler: gateway, TLSConfig: ...}
//
//	kubectl --server https://gateway.example.com/regions/eu-west-1.loodse get pods
//
// /regions/NAME.PROVIDER/... and /clusters/NAME.PROVIDER/... address a region. /peers/NAME/... addresses a peer, for
// operators, and exists only if Options.Peers is set.
//
// Guaranteed:
//   - Nothing is sent before the caller is authenticated. The embedding program's Authenticator returns the caller's
//     identity; its error, the zero Identity and router.Self are refused. There is no fallback.
//   - Identity headers of a request (Authorization, Impersonate-*, X-Remote-*, cookies, tokens among WebSocket
//     subprotocols, trailers) do not reach a peer, nor do headers that would make a proxy on the way remove the
//     identity. The proxy removes all of these, with or without an upgrade, before it adds the caller's identity.
//   - Bodies are streamed in both directions and watches are flushed at once. When the client disconnects, the
//     request to the peer is canceled. An answer that a peer cuts short is cut short for the client.
//   - exec, attach and port-forward work by WebSocket and SPDY, over separate connections with the peer's TLS.
//   - One caller or region leaves room for the others: see Limits. The limits by caller and region are below those
//     of the whole proxy. A request above its share waits in a queue of its caller and region for a limited time,
//     and takes no place meanwhile. A request ends if a body stalls, the peer is silent, or the client does not
//     read its answer, but not if bytes move slowly. Requests to a peer whose probes fail are refused at once,
//     except for one per second.
//   - A request to act as another user (Impersonate-*, kubectl --as) is refused with 403, never made as the caller.
//     Check such rights in the region itself.
//   - Requests are classified as long-running as kube-apiserver does.
//   - Redirects by a peer are neither followed nor passed on. A peer's answer cannot set cookies or policies for
//     the gateway's address, which other peers share.
//   - A 401 or 403 always means that the caller is refused. If a peer refuses the gateway's own credentials, or
//     does not let them act as the caller, the answer is 503 with a reason for callers, and a log line names the
//     peer for operators.
//   - A caller learns from an error neither a peer's name nor its address, nor which other regions exist.
//   - No log line has a header, a query or a body.
//
// Not guaranteed:
//   - Fairness among callers that the program cannot distinguish: each token that is passed on counts as a caller
//     (Options.Flow). Before authentication each address counts as one caller, and all callers behind one load
//     balancer have the same address.
//   - That a slow request ends as long as its bytes move, or that the Authenticator returns: both hold a place of
//     their caller.
//   - Authentication and TLS: the embedding program provides them. Prefer tokens and certificates to cookies.
//   - Paths with an encoded slash or backslash: they are refused, even if a service behind a peer would accept
//     them.
//   - That a stream ends when a token expires, or when its region moves to another peer: a peer authorizes a stream
//     when it begins. A stream ends with the client, the peer, or the context of the server
//     (http.Server.BaseContext).
//   - That a request with a body is repeated if the peer's credentials are replaced while it runs: it is answered
//     with 503 and Retry-After, and client-go then sends it again.
//   - That no backend of a peer imitates a refusal: a service behind a peer can turn its answers to its own callers
//     into 503.
package proxy
