// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package regiontest is an API server in memory, so that clients, informers, impersonation, watches and proxies run
// their real code in tests and examples, in milliseconds and without any program to install.
//
// A [Server] is an http.Handler with two doors. [Server.Config] reaches it within the process, over no socket, also
// inside a testing/synctest bubble; [Server.Listen] serves TLS on loopback. A [Ring] is several servers as a
// region.Directory. Neither imports testing, so examples can run them too.
//
// # What is guaranteed
//
// Package conformance states, fact by fact, what the server does, and judges it and a real kube-apiserver by the same
// list: resourceVersions, UIDs, generations, preconditions, finalizers, status, server-side apply with real schemas,
// patches, validation, defaulting, pruning and CEL rules of custom types (by apiextensions-apiserver's own packages),
// selectors, pages, watches with bookmarks and initial events, 410 Gone, tables, partial metadata, dry runs, namespaces
// and discovery. conformance.Differences lists where the server is known to deviate.
//
// Faults happen by script ([Server.Inject], [Server.Partition], [Server.Compact], [Server.Load]), and everything that was
// received can be read ([Server.Requests]). A connection is refused only if the server did not take the request in: a
// request that may have had its effect loses its reply, whenever the server is cut off.
//
// # What is not
//
//   - No controllers run, but for two: names of CRDs are accepted at once, and the content of a deleted namespace or CRD is
//     deleted at once, within the request. No garbage collection, no Deployments that make Pods, no addresses for Services.
//   - Built-in types are those that [NewServer] lists in its discovery. Their objects are held to names, to the fields that
//     their types have, to selectors and to the immutability of Secrets and ConfigMaps, not to all that a real server
//     validates; the defaults that most users see are filled in. Their tables have name and age.
//   - A Pod that runs on a node is deleted at once: there is no kubelet to wait for.
//   - OpenAPI has the schemas of custom types only.
//   - No admission webhooks and policies, no quotas, no conversion between versions that differ, no subresource scale, exec
//     or log, no protobuf except in the options of a deletion, no aggregated discovery document.
//   - Authentication is [Options.Tokens], client certificates and impersonation headers; authorization is
//     [Options.Authorize].
//   - Objects live in memory and are copied at every door; there is no limit but memory.
package regiontest
