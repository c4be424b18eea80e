// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// A content has the same token before and after the log stores it: after a crash the coordinator
// finds the content of an operation by that token.
func TestContentKeepsItsTokenInTheLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]content{
		"none":    nil,
		"empty":   {},
		"large":   {"spec": map[string]any{"n": int64(math.MaxInt64), "m": int64(-1<<53 - 1)}},
		"decimal": {"spec": []any{0.1, 1e21, true, nil, "<&>"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, err := c.token()
			require.NoError(t, err)
			data, err := journal{Content: c}.encode()
			require.NoError(t, err)
			j, err := decodeJournal(wal.Entry{Data: data})
			require.NoError(t, err)
			after, err := j.Content.token()
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}
