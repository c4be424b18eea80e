// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

const reader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: prober}
rules:
- {nonResourceURLs: [/metrics], verbs: [get]}
`

func TestRunAsRestricts(t *testing.T) {
	p := planetest.Shared(t, 1)[0]
	namespace := planetest.Namespace(t, p)
	kubeconfig, err := p.RunAs(t.Context(), []byte(reader))
	require.NoError(t, err)
	config, err := plane.ConfigOf(kubeconfig)
	require.NoError(t, err)
	restricted := planetest.Dynamic(t, config)

	_, err = restricted.Resource(configMaps).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "mine"},
	}}
	_, err = restricted.Resource(configMaps).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	_, err = restricted.Resource(secrets).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	config.Host += "/metrics?"
	require.NoError(t, get(t.Context(), t, config))
}

func TestRunAsRefuses(t *testing.T) {
	p := planetest.Shared(t, 1)[0]
	for name, test := range map[string]struct{ manifests, want string }{
		"nothing":      {"", "the manifests contain no ClusterRole"},
		"another kind": {"{apiVersion: v1, kind: Namespace, metadata: {name: x}}", "Namespace x is not a ClusterRole"},
		"no kind":      {"{metadata: {name: x}}", "document 1: it has no kind"},
		"no YAML":      {"a: b: c", "document 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.RunAs(t.Context(), []byte(test.manifests))
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestWhoAmI(t *testing.T) {
	p := planetest.Shared(t, 1)[0]
	alice, err := p.KubeconfigFor("alice", "team-a", "team-b")
	require.NoError(t, err)
	robot, err := p.ServiceAccountKubeconfig(t.Context(), "robots", "r2")
	require.NoError(t, err)
	for _, test := range []struct {
		kubeconfig []byte
		user       string
		groups     []string
	}{
		{p.Kubeconfig(), "admin", []string{"system:masters"}},
		{alice, "alice", []string{"team-a", "team-b"}},
		{robot, "system:serviceaccount:robots:r2", []string{"system:serviceaccounts:robots"}},
	} {
		t.Run(test.user, func(t *testing.T) {
			config, err := plane.ConfigOf(test.kubeconfig)
			require.NoError(t, err)
			review := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": authenticationv1.SchemeGroupVersion.String(), "kind": "SelfSubjectReview",
			}}
			reviews := authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews")
			answer, err := planetest.Dynamic(t, config).Resource(reviews).Create(t.Context(), review, metav1.CreateOptions{})
			require.NoError(t, err)
			user, _, _ := unstructured.NestedString(answer.Object, "status", "userInfo", "username")
			require.Equal(t, test.user, user)
			groups, _, _ := unstructured.NestedStringSlice(answer.Object, "status", "userInfo", "groups")
			require.Subset(t, groups, test.groups)
		})
	}
}
