// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds keeps the types of one API server, the upstream, and of others, the targets, in step. What the targets
// serve and the upstream lacks is pulled: it becomes a CustomResourceDefinition upstream, with a schema that all targets
// accept. What is defined upstream and a target lacks is pushed.
//
//	c, err := crds.New(crds.Options{
//		Upstream: upstream,
//		Targets:  func() []crds.Target { return []crds.Target{{Name: "cluster-1", API: cluster1}} },
//		Policy:   crds.Policy{{Group: "example.com", Resource: "*", Direction: crds.Pull}},
//	})
//	err = c.Start(ctx)
//
// A [Fleet] is a Controller whose targets are the clusters of a syncer.Targets, as they come and go: those that it reaches,
// in Push mode and in Pull mode. How their types stand is then said by each SyncTarget, in the condition TypesDefined and in
// TypesCompatible.
//
// # What is guaranteed
//
//   - A definition that this package did not make is never changed or removed. It is compared, and the differences are
//     reported.
//   - What an upstream definition that was pulled accepts, every target that serves the type accepts (see package schema).
//     It becomes wider when all targets allow it. It becomes narrower only while there are no objects of it, since those
//     that are there might not be accepted any more; until then the differences are reported.
//   - One type in trouble, or one target, does not stop another: [Controller.States] has each with its reason.
//   - Absence is not deletion. A definition is removed only if its [Rule] asks for it, every target that is configured has
//     answered and none serves the type (or the upstream has answered and does not define it), and it has no objects: by
//     its UID and resourceVersion, so never one that was changed meanwhile. To stop, and to change the policy, removes
//     nothing.
//   - At rest nothing is written, and only what has changed is read again: definitions by their resourceVersion, OpenAPI
//     documents by the hash in their URL.
//
// # What is not
//
//   - An object that is created between the look for objects and the removal of its definition is lost with it. Remove is
//     for types that nobody uses.
//   - Conversion webhooks do not cross: of a definition that has one, the version that is stored is taken.
//   - Built-in types of groups without a dot ("apps", "batch") and of the core group cannot be defined on a stock
//     kube-apiserver: such a type is Refused, with what the server says.
//   - Two controllers over the same upstream with different targets write in turns. Give one controller all targets.
//
// # Rights
//
// On every side: get, list, create, update and delete of customresourcedefinitions, and list of the types that may have
// to be narrowed or removed.
package crds
