// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

// A client of a gateway chooses methods, verbs and regions, and a peer chooses status codes and texts. Neither adds
// series without end.
func TestLabelsAreBounded(t *testing.T) {
	ring := regiontest.NewRing("peer-a")
	defer ring.Close()
	require.NoError(t, ring.Serve("peer-a", served))
	m, registry := newMetrics(t, Options{Directory: func() region.Directory { return ring }})
	proxied, routed, called := m.Proxy(nil), m.Router(nil), m.Region(nil)
	attack := func(i int) {
		name := fmt.Sprintf("x%d", i)
		for _, k := range []region.Key{{Provider: "loodse", Name: name}, {Provider: name, Name: "eu"}, {Provider: "peer", Name: name}} {
			for _, verb := range []string{"get", "watch", name} {
				e := proxy.Event{Region: k, Verb: verb, Code: 600 + i, Err: errors.New(name)}
				proxied.Served(t.Context(), e)
				proxied.Began(t.Context(), e)
			}
			routed.Routed(t.Context(), router.RouteEvent{Region: k, Peer: region.PeerName(name), Err: errors.New(name)})
			routed.Resolved(t.Context(), router.ResolveEvent{Region: k, Err: errors.New(name)})
			routed.Waited(t.Context(), router.WaitEvent{Region: k, Err: errors.New(name)})
		}
		_, done := called.Call(t.Context(), region.CallEvent{Peer: "peer-a", Method: name})
		done(600+i, errors.New(name))
		called.Probed(t.Context(), region.ProbeEvent{Peer: "peer-a", Err: errors.New(name)})
	}
	count := func() int {
		n, err := testutil.GatherAndCount(registry)
		require.NoError(t, err)
		return n
	}
	attack(0)
	first := count()
	for i := range 1000 {
		attack(i)
	}
	require.Equal(t, first, count())
}

func TestRegionLabel(t *testing.T) {
	ring := regiontest.NewRing("peer-a")
	defer ring.Close()
	require.NoError(t, ring.Serve("peer-a", served))
	without, _ := newMetrics(t, Options{})
	with, _ := newMetrics(t, Options{Directory: func() region.Directory { return ring }})
	before, _ := newMetrics(t, Options{Directory: func() region.Directory { return nil }})
	for name, c := range map[string]struct {
		m     *Metrics
		event proxy.Event
		want  string
	}{
		"served":               {with, proxy.Event{Region: served}, "eu.loodse"},
		"a peer itself":        {with, proxy.Event{Region: region.Key{Provider: "peer", Name: "peer-a"}}, "peer-a.peer"},
		"no such peer":         {with, proxy.Event{Region: region.Key{Provider: "peer", Name: "peer-b"}}, "unknown"},
		"not served":           {with, proxy.Event{Region: foreign}, "unknown"},
		"all regions":          {with, proxy.Event{All: true}, "*"},
		"another path":         {with, proxy.Event{}, ""},
		"no Directory":         {without, proxy.Event{Region: served}, ""},
		"no Directory, all":    {without, proxy.Event{All: true}, "*"},
		"the Directory is nil": {before, proxy.Event{Region: served}, "unknown"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.m.proxied(c.event)) })
	}
}

func TestVerbs(t *testing.T) {
	for v, want := range map[string]string{
		"get": "get", "deletecollection": "deletecollection", "post": "post", "head": "head", "options": "options",
		"GET": "other", "": "other", "purge": "other", "Get": "other",
	} {
		require.Equal(t, want, verb(v), v)
	}
}

func TestCauses(t *testing.T) {
	require.Equal(t, "other_cluster", cause(fmt.Errorf("a peer: %w", region.ErrOtherCluster)))
	require.Equal(t, "canceled", cause(fmt.Errorf("a peer: %w", context.Canceled)))
	require.Equal(t, "other", cause(errors.New("a new failure")))
}

// Each Cause of package region has a label value, and no two have the same.
func TestEveryCauseHasALabel(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../region/cause.go", nil, 0)
	require.NoError(t, err)
	var declared []string
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Cause") && spec.Names[0].Name != "CauseUnknown" {
			declared = append(declared, strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`))
		}
		return true
	})
	var labeled []string
	values := map[string]bool{"canceled": true, "other": true}
	for c, value := range causes {
		labeled = append(labeled, string(c))
		require.False(t, values[value], value)
		values[value] = true
	}
	require.ElementsMatch(t, declared, labeled)
}
