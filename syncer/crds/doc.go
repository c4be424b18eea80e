// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds syncs the definitions of types between one API server, the upstream, and others, the targets, as a
// [Policy] asks. A type that targets serve and the upstream lacks is pulled: it becomes a CustomResourceDefinition
// upstream, with a schema that all these targets accept. A type that is defined upstream and missing in a target is
// pushed.
//
//	c, err := crds.New(crds.Options{
//		Upstream: upstream,
//		Targets:  func() []crds.Target { return []crds.Target{{Name: "cluster-1", API: cluster1}} },
//		Policy:   crds.Policy{{Group: "example.com", Resource: "*", Direction: crds.Pull}},
//	})
//	err = c.Start(ctx)
//
// A [Fleet] is a Controller whose targets are the reachable clusters of a targets.Controller, in Push mode and in Pull
// mode. Clusters are added and removed with their SyncTargets. Each SyncTarget reports the state of its types in the
// condition TypesDefined and in TypesCompatible.
//
// # Guaranteed
//
//   - A definition that this package did not create is never changed or removed. It is compared, and the differences
//     are reported.
//   - Every object that a pulled definition accepts upstream is accepted by every target that serves the type (see
//     package schema). If all targets allow it, the definition becomes wider. If it has to become narrower, it does so
//     only while it has no objects, since existing ones might be rejected afterwards; until then the differences are
//     reported.
//   - A failure of one type or target does not stop another: [Controller.States] has the state of each type on each
//     side, with its reason.
//   - Absence is not deletion. A definition is removed only if its [Rule] asks for it and it has no objects. In
//     addition, for a pulled definition every configured target must have answered, and no target may serve the type.
//     For a pushed definition the upstream must have answered, and must not define the type. The removal is
//     conditional on UID and resourceVersion, so it never removes a definition that has changed meanwhile. Stopping,
//     or changing the policy, removes nothing.
//   - At rest nothing is written. Each pass lists the metadata of the definitions and reads discovery. It reads a
//     definition again only if its resourceVersion has changed. It reads an OpenAPI document again only if the hash in
//     its URL has changed, or if the URL has no hash.
//
// # Not guaranteed
//
//   - An object that is created between the check for objects and the removal of its definition is lost with it. Set
//     Remove only for types that are out of use.
//   - Conversion webhooks are not copied: of a definition with a webhook, only the storage version is used.
//   - Built-in types of groups without a dot ("apps", "batch") and of the core group cannot be defined on a stock
//     kube-apiserver: such a type is Refused, with the server's message.
//   - Two controllers over the same upstream with different targets overwrite each other. Give one controller all
//     targets.
//
// # Rights
//
// On every side: get, list, create, update and delete of customresourcedefinitions, and list of the types that may have
// to be narrowed or removed.
package crds
