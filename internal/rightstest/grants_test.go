// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rightstest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func TestGrants(t *testing.T) {
	t.Parallel()
	g := rightstest.New(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}, ResourceNames: []string{"kube-system"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/status"}, Verbs: []string{"patch", "create"}},
	)
	program, admin := rightstest.Tokens()[rightstest.Program], rightstest.Tokens()[rightstest.Admin]
	require.NoError(t, g.Authorize(regiontest.Request{User: admin, Verb: "delete", Resource: "nodes"}))
	require.NoError(t, g.Authorize(regiontest.Request{User: program, Verb: "get"}))
	require.Empty(t, g.Denied(nil))
	require.Len(t, g.Unused(), 3)
	status := regiontest.Request{User: program, Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "status", Name: "a", Code: 201}
	require.NoError(t, g.Authorize(status))
	require.Error(t, g.Authorize(regiontest.Request{User: program, Verb: "get", Resource: "namespaces", Name: "other"}))
	require.Equal(t, []string{"get namespaces. other"}, g.Denied([]regiontest.Request{status}))
	require.Equal(t, []string{"rule 0: get namespaces. kube-system"}, g.Unused())
}

func TestGrantsInANamespace(t *testing.T) {
	t.Parallel()
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}}
	g := rightstest.New().In("own", secrets).In("others", secrets)
	get := regiontest.Request{User: rightstest.Tokens()[rightstest.Program], Verb: "get", Resource: "secrets", Namespace: "own", Name: "s"}
	require.NoError(t, g.Authorize(get))
	require.Equal(t, []string{"rule 0: list secrets.", "rule 1: get secrets.", "rule 1: list secrets."}, g.Unused())
	get.Namespace = "third"
	require.ErrorContains(t, g.Authorize(get), "no role allows get secrets. s in third")
	everywhere := regiontest.Request{User: get.User, Verb: "list", Resource: "secrets"}
	require.Error(t, g.Authorize(everywhere))
	require.Equal(t, []string{"get secrets. s in third", "list secrets."}, g.Denied(nil))
}
