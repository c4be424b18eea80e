// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseKey(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Key
		err  string // empty: accepted
	}{
		{"eu-west-1.loodse", Key{Provider: "loodse", Name: "eu-west-1"}, ""},
		{"eu.west.1.loodse", Key{Provider: "loodse", Name: "eu.west.1"}, ""},
		{"eu-west-1", Key{}, "want NAME.PROVIDER"},
		{"", Key{}, "want NAME.PROVIDER"},
		{".loodse", Key{}, `name ""`},
		{"eu-west-1.", Key{}, `provider ""`},
		{"EU.loodse", Key{}, `name "EU"`},
		{"eu.Loodse", Key{}, `provider "Loodse"`},
		{"eu..loodse", Key{}, `name "eu."`},
	} {
		t.Run(tt.in, func(t *testing.T) {
			got, err := ParseKey(tt.in)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.in, got.String())
		})
	}
	require.Empty(t, Key{}.String())
}

func TestNewSnapshotRefuses(t *testing.T) {
	k := Key{Provider: "loodse", Name: "eu"}
	_, err := NewSnapshot(Peer{Name: "a"}, Peer{Name: "a"})
	require.ErrorContains(t, err, `peer "a" is listed twice`)
	_, err = NewSnapshot(Peer{Name: "b", Regions: []Key{k}}, Peer{Name: "a", Regions: []Key{k}})
	require.EqualError(t, err, `region "eu.loodse" is served by peer "a" and by peer "b"; one peer serves a region`)
	_, err = NewSnapshot(Peer{Name: "A"})
	require.ErrorContains(t, err, `peer "A"`)
	_, err = NewSnapshot(Peer{Name: "a", Regions: []Key{{Name: "eu", Provider: "x.y"}}})
	require.ErrorContains(t, err, `peer "a": region "eu.x.y": provider "x.y"`)
}

// A Snapshot locates each region in the peer that lists it, and yields the regions in order. A
// Snapshot that is made later has a higher generation.
func TestSnapshotProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owner := rapid.MapOf(
			rapid.Custom(func(t *rapid.T) Key {
				return Key{
					Provider: rapid.StringMatching(`[a-c]{1,2}`).Draw(t, "provider"),
					Name:     rapid.StringMatching(`[a-c]{1,2}(\.[a-c])?`).Draw(t, "name"),
				}
			}),
			rapid.StringMatching(`[p-r]{1,2}`),
		).Draw(t, "regions")
		peers := make(map[PeerName]*Peer)
		for k, name := range owner {
			p := peers[PeerName(name)]
			if p == nil {
				p = &Peer{Name: PeerName(name)}
				peers[p.Name] = p
			}
			p.Regions = append(p.Regions, k)
		}
		var list []Peer
		for _, p := range peers {
			list = append(list, *p)
		}
		s, err := NewSnapshot(list...)
		require.NoError(t, err)
		require.Equal(t, len(peers), s.Len())
		got := make(map[Key]string)
		var order []Key
		for k, p := range s.Regions() {
			got[k] = string(p.Name)
			order = append(order, k)
			located, ok := s.Locate(k)
			require.True(t, ok)
			require.Same(t, p, located)
			parsed, err := ParseKey(k.String())
			require.NoError(t, err)
			require.Equal(t, k, parsed)
		}
		require.True(t, maps.Equal(owner, got), "%v %v", owner, got)
		require.True(t, slices.IsSortedFunc(order, Key.Compare))
		_, ok := s.Locate(Key{Provider: "z", Name: "z"})
		require.False(t, ok)
		again, err := NewSnapshot(list...)
		require.NoError(t, err)
		require.Greater(t, again.Generation(), s.Generation())
		require.True(t, again.equal(s))
	})
}

func TestSnapshotIsACopy(t *testing.T) {
	labels := map[string]string{"continent": "europe"}
	regions := []Key{{Provider: "loodse", Name: "b"}, {Provider: "loodse", Name: "a"}}
	s, err := NewSnapshot(Peer{Name: "eu", Labels: labels, Regions: regions})
	require.NoError(t, err)
	labels["continent"], regions[0].Name = "asia", "c"
	p, _ := s.Peer("eu")
	require.Equal(t, "europe", p.Labels["continent"])
	require.Equal(t, []Key{{Provider: "loodse", Name: "a"}, {Provider: "loodse", Name: "b"}}, p.Regions)
}

func manyRegions(tb testing.TB) (*Snapshot, Key) {
	tb.Helper()
	peers := make([]Peer, 100)
	for i := range peers {
		peers[i].Name = PeerName(fmt.Sprintf("peer-%d", i))
		for j := range 10 {
			peers[i].Regions = append(peers[i].Regions, Key{Provider: "loodse", Name: fmt.Sprintf("r-%d-%d", i, j)})
		}
	}
	s, err := NewSnapshot(peers...)
	require.NoError(tb, err)
	return s, Key{Provider: "loodse", Name: "r-57-3"}
}

func TestLocateDoesNotAllocate(t *testing.T) {
	s, k := manyRegions(t)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = s.Locate(k)
		_, _ = s.Peer("peer-57")
	}))
}

func BenchmarkLocate(b *testing.B) {
	s, k := manyRegions(b)
	for b.Loop() {
		if _, ok := s.Locate(k); !ok {
			b.Fatal("not found")
		}
	}
}
