// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// TestAnswers covers all status codes of failed requests. A write is NotApplied only if it was
// never sent, or if a server rejected its only attempt for good. After any other failure it is
// Unknown. A read is NotFound only if absent is set.
func TestAnswers(t *testing.T) {
	refusals := map[int32]bool{}
	for code := int32(300); code < 500; code++ {
		refusals[code] = code != 408 && code != 429
	}
	for code := range int32(600) {
		if code > 0 && code < 300 {
			continue // no failure
		}
		for _, b := range bools(4) {
			a := answer{code: code, sent: b[0], repeated: b[1], exists: b[2] && code == 409, absent: b[3] && code == 404}
			class, got := a.ofWrite()
			require.NotEqual(t, protocol.Applied, class)
			never := code == 0 && !a.sent
			require.Equal(t, !a.repeated && (never || refusals[code]), class == protocol.NotApplied, "%+v", a)
			if class == protocol.Unknown {
				require.Equal(t, protocol.Unavailable, got, "%+v", a)
				continue
			}
			want := protocol.Denied
			switch {
			case never:
				want = protocol.Unavailable
			case a.exists:
				want = protocol.Exists
			case code == 409:
				want = protocol.Conflict
			case a.absent:
				want = protocol.NotFound
			}
			require.Equal(t, want, got, "%+v", a)

			read := a.ofRead()
			require.Equal(t, a.absent, read == protocol.NotFound, "%+v", a)
			require.Equal(t, code == 0 || !refusals[code], read == protocol.Unavailable, "%+v", a)
			require.True(t, slices.Contains([]protocol.Code{protocol.NotFound, protocol.Unavailable, protocol.Denied}, read))
		}
	}
}
