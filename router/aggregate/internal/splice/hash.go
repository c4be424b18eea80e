// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"fmt"
	"math"
	"math/bits"
)

// Fingerprint returns a hash of decoded JSON that does not depend on the order of keys.
func Fingerprint(seed uint64, v any) uint64 {
	switch v := v.(type) {
	case string:
		return hashText(seed, v)
	case map[string]any:
		sum := uint64(0)
		for key, value := range v {
			sum += pair(hashText(seed, key), Fingerprint(seed, value))
		}
		return object(sum, len(v))
	case []any:
		sum := uint64(0)
		for _, value := range v {
			sum = element(sum, Fingerprint(seed, value))
		}
		return array(sum, len(v))
	case bool:
		if v {
			return hashTrue
		}
		return hashFalse
	case int64:
		return integer(v)
	case float64:
		return float(v)
	case nil:
		return hashNull
	default:
		return hashText(seed, fmt.Sprintf("%T %v", v, v))
	}
}

// Stamp returns a hash of several objects, of the sum of their fingerprints and their number. It is never zero.
func Stamp(sum uint64, objects int) uint64 { return mix(sum+uint64(objects)*factor) | 1 }

const (
	hashTrue  = 3
	hashFalse = 4
	hashNull  = 7
)

func pair(key, value uint64) uint64       { return mix(key ^ bits.RotateLeft64(value, 32)) }
func object(pairs uint64, n int) uint64   { return mix(pairs + uint64(n) + 1) }
func element(before, value uint64) uint64 { return mix(before + value) }
func array(elements uint64, n int) uint64 { return elements + uint64(n) + 2 }
func integer(v int64) uint64              { return mix(uint64(v) + 5) }
func float(v float64) uint64              { return mix(math.Float64bits(v) + 6) }
func hashText[T string | []byte](seed uint64, s T) uint64 {
	h, n := seed, len(s)
	i := 0
	for ; i+8 <= n; i += 8 {
		h = fold(h, word(s, i))
	}
	var last uint64
	for j := n - 1; j >= i; j-- {
		last = last<<8 | uint64(s[j])
	}
	return fold(fold(h, last), uint64(n))
}

// word returns the 8 bytes of s from i on, the first byte lowest.
func word[T string | []byte](s T, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}

const (
	factor = 0x9e3779b97f4a7c15
	odd    = 0xa0761d6478bd642f
)

// fold mixes a word into a hash, by the folded product of wyhash. With a secret seed a client cannot choose two texts of
// one hash, as would be possible for a product without its upper half.
func fold(h, w uint64) uint64 {
	high, low := bits.Mul64(h^w^odd, factor^bits.RotateLeft64(h, 32))
	return high ^ low
}

// mix is the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
