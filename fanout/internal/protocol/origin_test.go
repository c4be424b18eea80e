// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOriginForeign(t *testing.T) {
	clusters := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		entry, now Origin
		want       bool
	}{
		"the same ring":                {Origin{Ring: "r"}, Origin{Ring: "r"}, false},
		"another ring":                 {Origin{Ring: "r", Clusters: clusters("a", "u")}, Origin{Ring: "s", Clusters: clusters("a", "u")}, true},
		"another ID, the same members": {Origin{Ring: "r", Clusters: clusters("a", "u", "b", "w")}, Origin{Ring: "s", Clusters: clusters("a", "u", "b", "w", "c", "x")}, false},
		"another ID, one is missing":   {Origin{Ring: "r", Clusters: clusters("a", "u", "b", "w")}, Origin{Ring: "s", Clusters: clusters("a", "u")}, true},
		"another ID, one is another":   {Origin{Ring: "r", Clusters: clusters("a", "u", "b", "w")}, Origin{Ring: "s", Clusters: clusters("a", "u", "b", "x")}, true},
		"another ID, nothing known":    {Origin{Ring: "r"}, Origin{Ring: "s", Clusters: clusters("a", "u", "b", "w")}, true},
		"the same ring, other members": {Origin{Ring: "r", Clusters: clusters("a", "u")}, Origin{Ring: "r", Clusters: clusters("a", "v")}, false},
		"nothing known then":           {Origin{}, Origin{Ring: "r", Clusters: clusters("a", "u")}, false},
		"nothing known now":            {Origin{Ring: "r", Clusters: clusters("a", "u")}, Origin{}, false},
		"no ID then, other clusters":   {Origin{Clusters: clusters("a", "u", "b", "w")}, Origin{Ring: "r", Clusters: clusters("a", "v", "b", "x")}, true},
		"no ID now, other clusters":    {Origin{Ring: "r", Clusters: clusters("a", "u")}, Origin{Clusters: clusters("a", "v")}, true},
		"no ID, one is the same":       {Origin{Clusters: clusters("a", "u", "b", "w")}, Origin{Clusters: clusters("a", "v", "b", "w")}, false},
		"no ID, no common name":        {Origin{Clusters: clusters("a", "u")}, Origin{Clusters: clusters("b", "v")}, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.entry.Foreign(c.now)) })
	}
}

func TestOriginOf(t *testing.T) {
	peers := ringNamed("u", "r", "a", "b", "c")
	delete(peers, "c") // c does not reply
	require.Equal(t, Origin{Ring: "r", Clusters: map[string]string{"a": "ua", "b": "ub", "c": "uc"}}, OriginOf(peers, Identify("", peers)))
	peers["c"] = foreign("s", "a", "b", "c")["c"]
	o := OriginOf(peers, Identify("", peers))
	require.Equal(t, "r", o.Ring)
	require.NotEqual(t, "vc", o.Clusters["c"])
}
