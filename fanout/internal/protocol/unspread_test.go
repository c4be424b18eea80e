// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnspread(t *testing.T) {
	found := Object{UID: "u"}
	for name, test := range map[string]struct {
		action  Action
		mode    Mode
		ending  Ending
		primary Object
		reason  Reason
		haveSet bool
		want    bool
	}{
		"removal that was committed alone":                {Remove, Once, Committed, found, "", false, true},
		"removal everywhere that was committed alone":     {Remove, Everywhere, Committed, found, "", false, true},
		"update that was committed alone":                 {Update, Everywhere, Committed, found, "", false, true},
		"update whose home is not found again":            {Update, Everywhere, Committed, Object{}, Unreachable, false, true},
		"the members are known and were asked":            {Remove, Once, Committed, found, "", true, false},
		"removal whose primary is gone: all were asked":   {Remove, Once, Committed, Object{}, "", false, false},
		"add of what exists once: guards precede it":      {Add, Once, Committed, found, "", false, false},
		"removal that is done":                            {Remove, Once, Done, found, "", false, false},
		"removal that came to nothing":                    {Remove, Once, Aborted, found, Unreachable, false, false},
		"update of which it is not known whether it took": {Update, Everywhere, InDoubt, found, Unreachable, false, false},
	} {
		m := New(Operation{Action: test.action, Mode: test.mode})
		m.Primary, m.HaveSet = test.primary, test.haveSet
		m.Result.Ending, m.Result.Reason = test.ending, test.reason
		require.Equal(t, test.want, m.Unspread(), name)
	}
}
