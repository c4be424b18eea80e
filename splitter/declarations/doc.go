// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package declarations follows the WorkloadTypes of an API server. It runs a function with the declared types, and runs it
// anew when they change. The function runs a splitter, a placement controller or a syncer with these types, whose options
// are fixed for their lifetime.
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
//     an object. At most MaxTypes objects count, in the order of their names.
//   - A WorkloadType that is deleted ends the division of its type, and removes no shards: they stay as they are.
//
// # Not guaranteed
//
//   - That parents of a type whose WorkloadType was deleted can be deleted: they keep the finalizer of the splitter. Declare
//     the type again, or delete the parents first.
package declarations
