// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"math"
	"math/bits"
)

// fingerprint returns a hash of decoded JSON that does not depend on the order of keys. After a restore from a backup,
// an object may have the same UID and resourceVersion in two histories: the hash distinguishes the object's states in
// these histories.
func fingerprint(seed uint64, v any) uint64 {
	switch v := v.(type) {
	case string:
		return hashText(seed, v)
	case map[string]any:
		sum := uint64(len(v)) + 1
		for key, value := range v {
			sum += mix(hashText(seed, key) ^ bits.RotateLeft64(fingerprint(seed, value), 32))
		}
		return mix(sum)
	case []any:
		sum := uint64(len(v)) + 2
		for _, value := range v {
			sum = mix(sum + fingerprint(seed, value))
		}
		return sum
	case bool:
		if v {
			return 3
		}
		return 4
	case int64:
		return mix(uint64(v) + 5)
	case float64:
		return mix(math.Float64bits(v) + 6)
	case nil:
		return 7
	default:
		return hashText(seed, fmt.Sprintf("%T %v", v, v))
	}
}

// hashText returns the FNV-1a hash of s, initialized with the seed.
func hashText(seed uint64, s string) uint64 {
	h := seed ^ 0xcbf29ce484222325
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h + uint64(len(s)))
}

// stamp returns a hash of a whole state, computed from the sum of the fingerprints of its objects and their
// number. It is never zero.
func stamp(sum uint64, objects int) uint64 { return mix(sum+uint64(objects)*0x9e3779b97f4a7c15) | 1 }

// mix is the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
