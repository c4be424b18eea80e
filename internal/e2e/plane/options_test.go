// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOptionsDefaults(t *testing.T) {
	bare, err := Options{}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, Options{Name: "plane"}, bare)
	pods, err := Options{Name: "x", Pods: true}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, Options{Name: "x", Controllers: true, Pods: true, Nodes: 1}, pods)
}

func TestOptionsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"name":     {Options{Name: "Eu West"}, `Name "Eu West"`},
		"negative": {Options{Pods: true, Nodes: -1}, "Nodes is -1"},
		"no pods":  {Options{Nodes: 2}, "Nodes without Pods"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(t.Context(), test.options)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestNames(t *testing.T) {
	require.Empty(t, Names(-1))
	require.Equal(t, []string{"eu-west", "us-east"}, Names(2))
	require.Equal(t, []string{"eu-west", "us-east", "ap-south", "peer-4", "peer-5"}, Names(5))
}
