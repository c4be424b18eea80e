// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// TestKeySteps compares step with a table of rules, for all values of keyed. It also calls
// settledStep with all combinations of its inputs.
func TestKeySteps(t *testing.T) {
	const any = 2
	rules := []struct { // the first rule that fits decides; 0 is false, 1 is true
		stored, open, same, committed, signed int
		belongs                               []protocol.Belonging
		want                                  keyStep
	}{
		{stored: 0, open: any, same: any, committed: any, signed: any, want: keyFree},
		{stored: 1, open: 1, same: 1, committed: any, signed: any, want: keySettle},
		{stored: 1, open: 1, same: 0, committed: any, signed: any, want: keyReused},
		{stored: 1, open: 0, same: any, committed: any, signed: 1, belongs: []protocol.Belonging{protocol.OfAnother}, want: keyNext},
		{stored: 1, open: 0, same: 0, committed: any, signed: any, want: keyReused},
		{stored: 1, open: 0, same: 1, committed: 0, signed: any, want: keyNext},
		{stored: 1, open: 0, same: 1, committed: 1, signed: any, belongs: []protocol.Belonging{protocol.Belongs}, want: keyAnswer},
		{stored: 1, open: 0, same: 1, committed: 1, signed: any, belongs: []protocol.Belonging{protocol.Unclear}, want: keyUnclear},
		{stored: 1, open: 0, same: 1, committed: 1, signed: 0, belongs: []protocol.Belonging{protocol.OfAnother}, want: keyForeign},
	}
	fits := func(rule int, is bool) bool { return rule == any || (rule == 1) == is }
	met := map[int]bool{}
	for bits := range 1 << 5 {
		for _, belongs := range []protocol.Belonging{protocol.Belongs, protocol.Unclear, protocol.OfAnother} {
			k := keyed{bits&1 > 0, bits&2 > 0, bits&4 > 0, bits&8 > 0, bits&16 > 0, belongs}
			decided := false
			for i, r := range rules {
				in := r.belongs == nil
				for _, b := range r.belongs {
					in = in || b == belongs
				}
				if in && fits(r.stored, k.stored) && fits(r.open, k.open) && fits(r.same, k.same) && fits(r.committed, k.committed) && fits(r.signed, k.signed) {
					require.Equal(t, r.want, k.step(), "%+v", k)
					decided, met[i] = true, true
					break
				}
			}
			require.True(t, decided, "%+v", k)
		}
	}
	require.Len(t, met, len(rules))

	for _, state := range []State{"", Done, Committed, Aborted, Ended, InDoubt} {
		want := keyAnswer
		if state == Aborted || state == Ended {
			want = keyNext
		}
		require.Equal(t, want, settledStep(false, state), state)
		require.Equal(t, keySettle, settledStep(true, state), state)
	}
}
