// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFingerprint(t *testing.T) {
	seed := uint64(1)
	values := []any{
		nil, true, false, "", "a", int64(0), int64(1), 1.0, []any{}, []any{"a"}, []any{"a", "b"}, []any{"b", "a"}, map[string]any{},
		map[string]any{"a": "b"}, map[string]any{"b": "a"}, map[string]any{"a": "a"}, map[string]any{"b": "b"},
		map[string]any{"a": map[string]any{"b": "c"}}, map[string]any{"a": "a", "b": "b"}, map[string]any{"a": nil},
	}
	seen := map[uint64]any{}
	for _, v := range values {
		h := Fingerprint(seed, v)
		require.NotContains(t, seen, h, "%#v", v)
		seen[h] = v
		require.Equal(t, h, Fingerprint(seed, v))
	}
}
