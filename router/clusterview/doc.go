// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterview serves, to the syncer of one cluster, only the objects that are placed in this cluster.
//
//	view, err := clusterview.New(routes, authenticate, clusterview.Options{})
//	...
//	mux.Handle("/synctargets/", view)
//
// A syncer that runs inside a cluster needs the right to read and patch the types that it syncs, and RBAC cannot limit
// this right to the objects of one cluster. So a thief of its credentials reads the Secrets of all clusters. With this
// package the credentials have no right to the objects. They have one right, the verb sync on the SyncTarget:
//
//	rules: [{apiGroups: [workload.kcp.io], resources: [synctargets], resourceNames: [c1], verbs: [sync]}]
//
// The kubeconfig of the syncer has the server https://gateway/synctargets/c1/regions/eu-west-1.loodse. The region sees the
// requests as those of Options.User, which needs the rights of syncer.UpstreamRights there. No authenticator may return
// that user for a caller.
//
// # Guaranteed
//
//   - Every request needs the right sync, which the region decides as the caller. A right that was granted is believed for
//     10 seconds. A watch ends after at most 10 minutes.
//   - An object is placed in the cluster if it has the label Options.Label with the name of the SyncTarget, the label
//     v1alpha1.StateLabelPrefix of the SyncTarget, or the SyncTarget's finalizer. Any other object is not found: it is in no
//     answer, and is not written.
//   - A write changes the status, the finalizer of the SyncTarget, the annotations of v1alpha1 with its name, and
//     Options.Fields. A write that would change anything else is refused with 403, and the answer names the field. To find
//     that out, the region gets the write as a dry run first. The write then has the UID and the resourceVersion of the
//     object that was judged, so it changes no other state of the object.
//   - Of SyncTargets, only the own one is served, and only its status can be written. Of Namespaces, kube-system is served,
//     by whose UID a syncer knows its upstream.
//   - Discovery, OpenAPI, the version and health checks are those of the region.
//
// # Not guaranteed
//
//   - Objects are neither created nor deleted: the options Upsync, OnDownstreamDelete and NamespaceSync of a syncer do not
//     work here.
//   - The status of an object that is placed in several clusters can be written by each of their syncers.
//   - A watch needs a label selector by which only placed objects match, as a syncer sends it. A list without one is
//     filtered here, page by page. Such lists, and reads of one object, have objects or metadata, and no tables.
//   - Of patches, merge patches and server-side apply are served.
//   - A write costs four requests: the review of the right, a read, the dry run and the write.
package clusterview
