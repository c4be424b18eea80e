// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"cmp"
	"slices"
)

// This file has the methods with which TestMethodsCompared compares Divide. They use only the
// weights, and no present replicas.

// largestRemainder gives each cluster its share rounded down, and the remaining seats to the
// clusters with the largest fractions.
func largestRemainder(n int64, weights []int64) []int64 {
	seats, rest := floors(n, weights)
	total := sumOf(weights)
	order := ranked(weights, func(i, j int) int { return cmp.Compare(n*weights[j]%total, n*weights[i]%total) })
	for _, i := range order[:rest] {
		seats[i]++
	}
	return seats
}

// floorThenLargest gives each cluster its share rounded down, and one of the remaining seats each
// to the heaviest clusters.
func floorThenLargest(n int64, weights []int64) []int64 {
	seats, rest := floors(n, weights)
	order := ranked(weights, func(i, j int) int { return cmp.Compare(weights[j], weights[i]) })
	for _, i := range order[:rest] {
		seats[i]++
	}
	return seats
}

// ceilInTurn takes the clusters in turn, the heaviest first, and gives each its share rounded up,
// as long as seats are left.
func ceilInTurn(n int64, weights []int64) []int64 {
	seats, total := make([]int64, len(weights)), sumOf(weights)
	left := n
	for _, i := range ranked(weights, func(i, j int) int { return cmp.Compare(weights[j], weights[i]) }) {
		seats[i] = min(left, (n*weights[i]+total-1)/total)
		left -= seats[i]
	}
	return seats
}

func floors(n int64, weights []int64) (seats []int64, rest int64) {
	total := sumOf(weights)
	rest = n
	for _, w := range weights {
		seats = append(seats, n*w/total)
		rest -= n * w / total
	}
	return seats, rest
}

func sumOf(numbers []int64) (total int64) {
	for _, n := range numbers {
		total += n
	}
	return total
}

// ranked returns the indices of the weights, sorted by rule. The sort is stable.
func ranked(weights []int64, rule func(i, j int) int) []int {
	order := make([]int, len(weights))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, rule)
	return order
}
