// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy serves many regions at one address: an http.Handler that sends each request straight to the API server of
// its region, as the caller.
//
//	gateway, err := proxy.New(routes, authenticate, proxy.Options{})
//	...
//	server := &http.Server{Handler: gateway, TLSConfig: ...}
//
//	kubectl --server https://gateway.example.com/regions/eu-west-1.loodse get pods
//
// /regions/NAME.PROVIDER/... and /clusters/NAME.PROVIDER/... are a region; /peers/NAME/... is a peer, for operators, and is
// not there unless Options say so.
//
// Guaranteed:
//   - Nothing is sent before the caller is known. Who that is, the embedding program's Authenticator says; its error, the
//     zero Identity and router.Self are refused. There is nothing else to fall back to.
//   - What a request says of an identity (Authorization, Impersonate-*, X-Remote-*, cookies, tokens among WebSocket
//     subprotocols, trailers) does not reach a peer, nor do the headers that would make somebody on the way remove what
//     says it. The identity is put in behind all that, with or without an upgrade.
//   - Bodies are streamed in both directions and watches are flushed at once. When the client goes, so does its request.
//     An answer that a peer cuts short is cut short for the client.
//   - exec, attach and port-forward, by WebSocket and SPDY, over connections of their own with the peer's TLS.
//   - What one caller does, or one region, leaves room for the others: see Limits. Bounds by caller and region hold before
//     those of the whole; who is above a share waits in a line of its own for a limited time, and takes no place meanwhile.
//     A body that stalls, a peer that is silent and a client that does not take its answer are given up, whereas
//     bytes that move slowly go on. A peer whose probes fail is refused at once, but for one request a second.
//   - A request to act as another user (Impersonate-*, kubectl --as) is refused with 403, never made as the caller. Check
//     such rights in the region itself.
//   - Which requests are long-running is judged as kube-apiserver does.
//   - Redirects by a peer are not followed and not handed on. What it answers cannot set cookies for, or policies of, the
//     address that other peers are behind too.
//   - 401 and 403 are about the caller. A peer that refuses the gateway's own credentials, or to let them act as the caller,
//     is 503 with a reason for callers, and a log line that names the peer for operators.
//   - A caller learns from an error neither a peer's name nor its address, nor which other regions there are.
//   - No log line has a header, a query or a body.
//
// Not guaranteed:
//   - Fairness among callers that the program cannot tell apart: tokens that are passed on unseen count each as a caller
//     (Options.Flow), and so do addresses before authentication, of which a load balancer in front has only one.
//   - That a request which moves, however slowly, ends, or how long the Authenticator takes: both hold a place of their caller's.
//   - Authentication and TLS: they are the embedding program's. Prefer tokens and certificates to cookies.
//   - Paths with an encoded slash or backslash: they are refused, also where a service behind a peer would take them.
//   - That a stream ends when a token does, or when its region moves to another peer: a peer judges a stream when it begins.
//     Streams end when the client, the peer, or the context of the server (http.Server.BaseContext) does.
//   - That a request with a body is sent again when a peer's credentials were replaced in that moment: it is answered with
//     503 and Retry-After, upon which client-go sends it again.
//   - That no peer's backend imitates a refusal: who reaches a service of theirs through a peer can make its answers to
//     themselves 503.
package proxy
