// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/splitter"
)

// conditioned is a Kind, written by a user of the package, that permits the condition Placed.
type conditioned struct{ splitter.Kind }

func (conditioned) Conditions() splitter.Conditions { return splitter.Conditions{Placed: true} }

// The Splitter adds the condition Placed to the parents of a user's own Kind only if this Kind
// permits the condition.
func TestAKindPermitsConditions(t *testing.T) {
	sets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	byPaths, err := splitter.ByPaths(sets, splitter.Paths{})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		kind splitter.Kind
		want string
	}{
		"silent":    {byPaths, ""},
		"permitted": {conditioned{byPaths}, "True Placed: all replicas have a place"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, splitter.Options{Kinds: []splitter.Kind{tc.kind}}, cluster("a", ""), cluster("b", ""))
				w.create(sets, strings.Replace(deployment("web", 4), "kind: Deployment", "kind: StatefulSet", 1))
				w.rest()
				require.NotEmpty(t, w.get(sets, "web--a").GetUID())
				require.Equal(t, tc.want, w.conditionOf(sets, "web", splitter.ConditionPlaced))
			})
		})
	}
}
