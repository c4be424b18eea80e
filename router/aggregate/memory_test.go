// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
)

// A region is missing until it has delivered, or answers that it does not serve the type. Once it has delivered, it is
// required until it leaves. The queries of a cache have memories of their own.
func TestDelivered(t *testing.T) {
	eu, us := region.Key{Provider: "loodse", Name: "eu"}, region.Key{Provider: "loodse", Name: "us"}
	var d Delivered
	one, other := RequireDelivered(&d).of(query{namespace: "one"}), RequireDelivered(&d).of(query{namespace: "other"})
	outcomes := func(ofEU, ofUS State) []Outcome {
		return []Outcome{{Region: eu, State: ofEU}, {Region: us, State: ofUS}}
	}
	require.False(t, one.met(outcomes(Timeout, Unreachable)), "no region answered")
	require.True(t, one.met(outcomes(OK, Unreachable)))
	require.Empty(t, d.Missing())

	one.note(outcomes(OK, Unreachable)...)
	require.Equal(t, []region.Key{us}, d.Missing())
	require.False(t, one.met(outcomes(Failed, OK)), "eu has delivered")
	require.True(t, other.met(outcomes(Failed, OK)), "not in this query")
	require.False(t, RequireDelivered(&d).met(outcomes(OK, Failed)), "a get needs all regions")
	one.note(outcomes(Timeout, NotServed)...)
	require.Empty(t, d.Missing())
	require.True(t, one.met(outcomes(Empty, Unreachable)))

	one.note(outcomes(OK, Timeout)...)
	other.note(outcomes(Forbidden, Empty)...)
	require.Equal(t, []region.Key{eu, us}, d.Missing())
	d.keep(one.query, []source{{region: eu}})
	require.Equal(t, []region.Key{eu}, d.Missing(), "us has left")
	d.keep(one.query, nil)
	require.True(t, one.met(outcomes(Failed, OK)), "eu has left, so it is not required")

	require.Equal(t, All(), RequireDelivered(nil))
}
