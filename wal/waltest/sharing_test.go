// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package waltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// denying is a wrapper with its own Shared, whose result may be wrong.
type denying struct {
	wal.Log
	shared bool
}

func (d denying) Shared() bool { return d.shared }

// TestExclusivity checks that the tests reject a wrapper that does not forward Shared.
func TestExclusivity(t *testing.T) {
	for name, c := range map[string]struct {
		log    *Memory
		claims bool
		want   string
	}{
		"shared, and says so":     {NewSharedMemory(), true, ""},
		"exclusive, and says so":  {NewMemory(), false, ""},
		"shared, and denies it":   {NewSharedMemory(), false, "can be opened twice"},
		"exclusive, and hides it": {NewMemory(), true, "refuses a second handle"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.log.Close())
			err := exclusivity(t.Context(), func() (wal.Log, error) {
				m, err := c.log.Attach()
				return denying{m, c.claims}, err
			})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
