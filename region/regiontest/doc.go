// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package regiontest is an API server in memory. Clients, informers, impersonation, watches and proxies run their real code
// against it in tests and examples, in milliseconds and without an installed program.
//
// A [Server] is an http.Handler with two ways in. [Server.Config] reaches it within the process, without a socket, even
// in a testing/synctest bubble; [Server.Listen] serves TLS on loopback. A [Ring] is several servers as a
// region.Directory. The package does not import testing, so examples can use it too.
//
// # Guaranteed
//
// Package conformance lists, fact by fact, the behavior of the server, and tests it and a real kube-apiserver with the same
// list: resourceVersions, UIDs, generations, preconditions, finalizers, status, server-side apply with real schemas,
// patches, validation, defaulting, pruning and CEL rules of custom types (by apiextensions-apiserver's own packages),
// selectors, pages, watches with bookmarks and initial events, 410 Gone, tables, partial metadata, dry runs, namespaces
// and discovery. The file differences.go of package conformance lists the known deviations of the server.
//
// Faults are scripted ([Server.Inject], [Server.Partition], [Server.Compact], [Server.Load]), and all received requests are
// recorded ([Server.Requests]). A connection is refused only if the server did not accept the request. If a request may have
// had an effect when the server is partitioned, only its response is lost.
//
// # Not guaranteed
//
//   - There are no controllers, with two exceptions: names of CRDs are accepted at once, and the content of a deleted namespace
//     or CRD is deleted at once, within the request. No garbage collection, no Pods of Deployments, no addresses of Services.
//   - Built-in types are those in the discovery of [NewServer]. Their objects are checked for names, fields of their types,
//     selectors and the immutability of Secrets and ConfigMaps, not for everything that a real server validates. The most
//     visible defaults are set. Their tables have name and age.
//   - A Pod that runs on a node is deleted at once: there is no kubelet to wait for.
//   - OpenAPI has the schemas of custom types only.
//   - No admission webhooks and policies, no quotas, no conversion between versions that differ, no subresource scale, exec
//     or log, no protobuf except in the options of a deletion, no aggregated discovery document.
//   - Authentication is [Options.Tokens], client certificates and impersonation headers; authorization is
//     [Options.Authorize].
//   - Objects live in memory and are copied in each request and response; memory is the only limit.
package regiontest
