// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package argument

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMissing(t *testing.T) {
	for _, v := range []any{nil, (*int)(nil), (func())(nil), fmt.Stringer(nil)} {
		require.True(t, Missing(v), "%T", v)
	}
	for _, v := range []any{0, "", new(int), func() {}, []string(nil), map[string]int(nil), struct{}{}} {
		require.False(t, Missing(v), "%T", v)
	}
}
