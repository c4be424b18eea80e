// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import "slices"

// candidate is one replica that may own keys.
type candidate struct {
	identity string
	hash     uint64
}

// candidates returns the replicas with these identities, without duplicates.
func candidates(identities []string) []candidate {
	sorted := slices.Compact(slices.Sorted(slices.Values(identities)))
	list := make([]candidate, len(sorted))
	for i, id := range sorted {
		list[i] = candidate{id, hash(id)}
	}
	return list
}

// owner returns the replica with the highest score for key, empty without candidates. A score depends only on key and
// replica.
func owner(list []candidate, key string) string {
	var best string
	var highest uint64
	k := hash(key)
	for _, c := range list {
		if score := mix(c.hash ^ k); best == "" || score > highest {
			best, highest = c.identity, score
		}
	}
	return best
}

// hash is FNV-1a with mix: the same in every process and version of the program.
func hash(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h)
}

// mix is the finalizer of SplitMix64: with FNV alone, similar names have similar high bits, and scores are skewed.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
