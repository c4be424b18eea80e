// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package declarations follows the WorkloadTypes of an API server. It runs a function with the declared types. When
// the types change, it ends the function and runs it again: the splitter, placement controller or syncer that the function
// runs cannot change its types while it runs.
//
//	follow, err := declarations.New(up, func(ctx context.Context, types []v1alpha1.WorkloadTypeSpec) error {
//		s, err := splitter.New(up, clusters, splitter.Options{Kinds: kinds(types)})
//		if err != nil {
//			return err
//		}
//		return s.Start(ctx)
//	}, declarations.Options{})
//	err = follow.Start(ctx)
//
// # Guaranteed
//
//   - A WorkloadType with a fault changes nothing: the last spec without a fault stays in effect, also after a restart,
//     since the status has it. The condition Ready has every fault.
//   - The function never runs twice at the same time. It runs as long as the declared types stay the same: a change of
//     labels, or of a spec with a fault, does not end it.
//   - While the API server is unreachable, nothing changes.
//   - The types of Kubernetes, the types in Options.Fixed, and those that Options.Refuse rejects, cannot be declared by
//     an object. At most MaxTypes objects are in effect, in the order of their names.
//   - After a WorkloadType is deleted, objects of its type are no longer divided. Their shards stay as they are.
//
// # Not guaranteed
//
//   - That divided objects can be deleted after their WorkloadType: they keep the finalizer of the splitter. Delete them
//     first, or declare the type again.
package declarations
