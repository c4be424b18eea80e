// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

func TestOptionsAreChecked(t *testing.T) {
	widget := schema.GroupKind{Group: "example.org", Kind: "Widget"}
	api := newSide(t, "any", regiontest.Options{}).api
	for name, test := range map[string]struct {
		opts syncer.Options
		want string
	}{
		"no target":         {syncer.Options{}, `syncer: options: Target "": want the name of a SyncTarget`},
		"bad target":        {syncer.Options{Target: "a b"}, `Target "a b"`},
		"bad label":         {syncer.Options{Target: "a", Label: "a b"}, `Label "a b": want the key of a label`},
		"unknown policy":    {syncer.Options{Target: "a", Adopt: 7}, "Adopt 7: want AdoptNever"},
		"too large a part":  {syncer.Options{Target: "a", DeleteCap: syncer.DeleteCap{Share: 2}}, "DeleteCap.Share 2: want a part"},
		"rule without type": {syncer.Options{Target: "a", Rules: []syncer.Rule{{Path: "spec"}}}, "Rules[0]: the Type has no kind"},
		"rule without path": {syncer.Options{Target: "a", Rules: []syncer.Rule{{Type: widget}}}, `Path "": want names divided by dots`},
		"rule of a list":    {syncer.Options{Target: "a", Rules: []syncer.Rule{{Type: widget, Path: "spec.a[*].b", Owner: syncer.FirstWriter}}}, "[*] is not possible with FirstWriter"},
		"up of a list":      {syncer.Options{Target: "a", Rules: []syncer.Rule{{Type: widget, Path: "spec.a[*].b", Owner: syncer.Downstream, Up: true}}}, "[*] is not possible with Up"},
		"up of its own":     {syncer.Options{Target: "a", Rules: []syncer.Rule{{Type: widget, Path: "spec.a", Up: true}}}, "Up needs the Owner Downstream or FirstWriter"},
		"first in a status": {syncer.Options{Target: "a", Rules: []syncer.Rule{{Type: widget, Path: "status.a", Owner: syncer.FirstWriter}}}, "of a status there is only"},
		"unknown change":    {syncer.Options{Target: "a", Rules: []syncer.Rule{{Type: widget, Path: "spec.a", Change: 3}}}, "Change 3: want Report or Recreate"},
		"unknown deletion":  {syncer.Options{Target: "a", OnDownstreamDelete: 5}, "OnDownstreamDelete 5: want RecreateCopy or DeleteUpstream"},
		"unknown owner":     {syncer.Options{Target: "a", Rules: []syncer.Rule{{Type: widget, Path: "spec.a", Owner: 9}}}, "Owner 9: want Upstream"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := syncer.New(api, api, test.opts)
			require.ErrorContains(t, err, test.want)
		})
	}
	for _, path := range []string{"[*]", "a..b", ".a", "a.", "a[", `a["`, `a[""]`, "a[x]", "a[*]b"} {
		_, err := syncer.New(api, api, syncer.Options{Target: "a", Rules: []syncer.Rule{{Type: widget, Path: path}}})
		require.Error(t, err, path)
	}
	for _, path := range []string{"a", "a.b", "a[*]", "a[*].b[*].c", `metadata.annotations["example.org/a.b"]`, `a["x"].b`} {
		_, err := syncer.New(api, api, syncer.Options{Target: "a", Rules: []syncer.Rule{{Type: widget, Path: path}}})
		require.NoError(t, err, path)
	}
	_, err := syncer.New(nil, api, syncer.Options{Target: "a"})
	require.ErrorContains(t, err, "API is nil")
}

func TestOneClusterIsNotTwo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one := newSide(t, "one", regiontest.Options{})
		s, err := syncer.New(one.api, one.api, syncer.Options{Target: target})
		require.NoError(t, err)
		require.ErrorContains(t, s.Start(t.Context()), "upstream and downstream are the same cluster")
		require.ErrorContains(t, s.Start(t.Context()), "Start was called twice")
	})
}
