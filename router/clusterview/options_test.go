// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

func TestArguments(t *testing.T) {
	routes, err := router.New(region.Fixed(), router.Options{})
	require.NoError(t, err)
	_, err = New(nil, authenticate, Options{})
	require.ErrorContains(t, err, "router is nil")
	_, err = New(routes, nil, Options{})
	require.ErrorContains(t, err, "authenticator is nil")
	_, err = New(routes, authenticate, Options{Label: "no label"})
	require.ErrorContains(t, err, "Options.Label")
	_, err = New(routes, authenticate, Options{Limits: proxy.Limits{Requests: -1}})
	require.ErrorContains(t, err, "Limits")
}

// Options.Label and Options.User are used in place of the defaults.
func TestLabelAndUser(t *testing.T) {
	s := newScene(t, Options{Label: "example.com/cluster", User: func(target string) router.User {
		return router.User{Name: "view-of-" + target, Groups: []string{"atoll:clusters"}}
	}})
	s.put(configMaps, "ConfigMap", "mine", map[string]any{"example.com/cluster": "c1"})
	s.put(configMaps, "ConfigMap", "other", at("c1"))
	var users []string
	record := func(r regiontest.Request) {
		if r.Verb == "list" {
			users = append(users, r.User.Name)
		}
	}
	s.reached.Store(&record)
	list, err := s.syncer().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "mine", list.Items[0].GetName())
	require.Equal(t, []string{"view-of-c1"}, users)
}
