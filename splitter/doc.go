// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package splitter divides workloads over clusters.
//
// [Divide] gives replicas to clusters, by one rule for all: Webster's and Sainte-Laguë's divisor method, within minima,
// maxima and room, continued from what is present, over any number of levels of regions and zones. The result is a [Plan]:
// data that says who gets what, what finds no place, and why.
//
//	plan, err := splitter.Divide(splitter.Demand{Replicas: 15, UID: deployment.UID}, []splitter.Share{
//		{Name: "cluster-1", Weight: new(int64(2)), Present: 6},
//		{Name: "cluster-2", Weight: new(int64(3)), Capacity: new(int64(40))},
//	})
//
// Guaranteed, for each level, all modes and any bounds (docs/division.md tells of the tests and of other methods):
//   - Nothing is lost: what clusters get and what finds no place add up. Bounds are kept.
//   - More replicas take none away anywhere; fewer add none anywhere.
//   - Who joins only takes from the others, who leaves only gives to them. Nobody else is shuffled.
//   - Nothing moves that need not, and no more than allowed.
//   - Equal claims are decided in the same way each time for one object, and fairly over many.
//   - Whole numbers, without overflow or rounding; the order of the input does not matter.
//
// Not guaranteed:
//   - That everybody gets its quota rounded down or up. No method can promise that together with the above; the distance
//     is rarely more than one replica.
//   - Anything about pods: a division knows numbers only.
package splitter
