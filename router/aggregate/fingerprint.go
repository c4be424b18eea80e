// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
)

// fingerprint is a hash of decoded JSON that does not depend on the order of keys. Two states of one object in different
// histories may have the same UID and resourceVersion, as after a restore from a backup: their content tells them apart.
func fingerprint(seed maphash.Seed, v any) uint64 {
	switch v := v.(type) {
	case string:
		return maphash.String(seed, v)
	case map[string]any:
		sum := uint64(len(v)) + 1
		for key, value := range v {
			sum += mix(maphash.String(seed, key) ^ bits.RotateLeft64(fingerprint(seed, value), 32))
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
		return maphash.String(seed, fmt.Sprintf("%T %v", v, v))
	}
}

// mix is the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
