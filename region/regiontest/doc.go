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
// Package conformance states the behavior of the server as a list of facts, and tests each fact on the server in memory
// and on a real kube-apiserver. The facts are about resourceVersions, UIDs, generations, preconditions, finalizers,
// status, server-side apply with real schemas, patches, validation, defaulting, pruning and CEL rules of custom types
// (by apiextensions-apiserver's own packages), selectors, pages, watches with bookmarks and initial events, 410 Gone,
// tables, partial metadata, dry runs, namespaces and discovery. The file differences.go of package conformance lists
// the known deviations of the server.
//
// Faults are scripted ([Server.Inject], [Server.Partition], [Server.Compact], [Server.Load]), and all received requests
// are recorded ([Server.Requests]). If the server is partitioned, it refuses a connection only for a request that it
// did not accept. It executes a request that it has accepted, and only the response is lost.
//
// # Not guaranteed
//
//   - There are no controllers, with two exceptions: the server accepts the names of CRDs at once, and it deletes the
//     content of a deleted namespace or CRD at once, within the request. The server collects no garbage, creates no Pods
//     of Deployments and assigns no addresses to Services.
//   - The built-in types are those that a new server lists in its discovery documents. The server checks their objects
//     for names, fields of their types, selectors and the immutability of Secrets and ConfigMaps, not for everything that
//     a real server validates. It sets the most visible defaults. Their tables have name and age.
//   - A Pod that runs on a node is deleted at once: the server has no kubelet to wait for.
//   - OpenAPI has the schemas of custom types only.
//   - The server has no admission webhooks and policies, no quotas, no conversion between versions that differ, no
//     subresource scale, exec or log, no protobuf except in the options of a deletion, and no aggregated discovery document.
//   - Authentication is [Options.Tokens], client certificates and impersonation headers; authorization is
//     [Options.Authorize].
//   - Objects live in memory and are copied in each request and response; memory is the only limit.
package regiontest
