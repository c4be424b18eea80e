// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/maintest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

func TestMessage(t *testing.T) {
	eu, us := Rival{"eu", "u-1", time.Unix(60, 0)}, Rival{"us", "u-2", time.Unix(0, 0)}
	require.Equal(t, "kubectl delete accounts.catalog.kubecarrier.io acme", Command("accounts.catalog.kubecarrier.io", "", "acme"))
	for _, tc := range []struct {
		all  []Rival
		want string
	}{
		{[]Rival{us, eu}, "2 objects of this name were applied without a claim, and none of them holds the name: eu (UID u-1, created 1970-01-01T00:01:00Z); us (UID u-2, created 1970-01-01T00:00:00Z): keep one and delete the others there (kubectl delete secrets a -n b), then a coordinator adopts it"},
		// Without the names of peers, the oldest is first.
		{[]Rival{{"", eu.UID, eu.Created}, {"", us.UID, us.Created}}, "2 objects of this name were applied without a claim, and none of them holds the name: UID u-2, created 1970-01-01T00:00:00Z; UID u-1, created 1970-01-01T00:01:00Z: keep one and delete the others there (kubectl delete secrets a -n b), then a coordinator adopts it"},
	} {
		require.Equal(t, tc.want, Message(Command("secrets", "b", "a"), tc.all))
	}
}

// The order in which the rivals were observed does not matter, and the message names each of them.
func TestTheOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Rival {
			return Rival{rapid.SampledFrom([]string{"", "ap", "eu", "us"}).Draw(t, "peer"), rapid.StringMatching(`u-[a-z]{4}`).Draw(t, "uid"), time.Unix(0, 0)}
		}), 2, 5).Draw(t, "rivals")
		message := Message("kubectl", all)
		require.Equal(t, message, Message("kubectl", rapid.Permutation(all).Draw(t, "other order")))
		require.Equal(t, message, Message("kubectl", append(all, all[0])))
		for _, r := range all {
			require.True(t, strings.Contains(message, r.Peer) && strings.Contains(message, r.UID))
		}
	})
}
