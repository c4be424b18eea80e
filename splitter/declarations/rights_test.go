// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package declarations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter/declarations"
)

// The rights in rights.Declarations are enough, and the Follower uses each of them.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		grants := rightstest.New(rights.Declarations().Rules...)
		s := regiontest.NewServer(regiontest.Options{History: 100000, Tokens: rightstest.Tokens(), Authorize: grants.Authorize})
		t.Cleanup(s.Close)
		w := &world{Server: s, t: t, api: rightstest.API(t, s, rightstest.Admin)}
		w.serve()
		require.NoError(t, w.create(rollouts("spec.replicas")))
		admin := w.api
		w.api = rightstest.API(t, s, rightstest.Program)
		w.start(declarations.Options{})
		w.api = admin
		require.Equal(t, "True Complete the declaration is in effect", w.ready())
		require.Empty(t, grants.Denied(s.Requests()))
		require.Empty(t, grants.Unused())
	})
}
