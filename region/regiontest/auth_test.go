// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/atoll-dev/atoll/region/regiontest"
)

func TestImpersonationIsRecordedAndAuthorized(t *testing.T) {
	s := regiontest.NewServer(regiontest.Options{
		Tokens: map[string]regiontest.User{"lib": {Name: "library"}},
		Authorize: func(r regiontest.Request) error {
			if r.User.Name == "library" && r.Verb == "impersonate" && slices.Contains([]string{"alice", "7", "dev", "a", "b"}, r.Name) && r.Resource != "serviceaccounts" {
				return nil
			}
			if r.User.Name == "alice" && r.Verb == "get" {
				return nil
			}
			return errors.New("")
		},
	})
	defer s.Close()
	as := func(token string, who rest.ImpersonationConfig) error {
		config := s.Config()
		config.BearerToken, config.Impersonate = token, who
		client, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		_, err = client.Resource(namespaces).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	}
	require.NoError(t, as("lib", rest.ImpersonationConfig{UserName: "alice", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"Example.org/Scope": {"a", "b"}}}))
	got := s.Requests()[0]
	require.Equal(t, "library", got.Impersonator.Name)
	require.Equal(t, regiontest.User{
		Name: "alice", UID: "7", Groups: []string{"dev", "system:authenticated"}, Extra: map[string][]string{"example.org/scope": {"a", "b"}},
	}, got.User)
	require.Equal(t, 200, got.Code)

	require.EqualError(t, as("lib", rest.ImpersonationConfig{}), `namespaces "default" is forbidden: User "library" cannot get resource "namespaces" in API group "" in the namespace "default"`)
	require.EqualError(t, as("lib", rest.ImpersonationConfig{UserName: "bob"}), `users "bob" is forbidden: User "library" cannot impersonate resource "users" in API group "" at the cluster scope`)
	for want, who := range map[string]rest.ImpersonationConfig{
		`uids.authentication.k8s.io "8" is forbidden: User "library" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope`: {UserName: "alice", UID: "8"},
		`groups "ops" is forbidden: User "library" cannot impersonate resource "groups" in API group "" at the cluster scope`:                                      {UserName: "alice", Groups: []string{"dev", "ops"}},
		`userextras.authentication.k8s.io "c" is forbidden: User "library" cannot impersonate resource "userextras/example.org/scope" in API group "authentication.k8s.io" at the cluster scope`: {
			UserName: "alice", Extra: map[string][]string{"example.org/scope": {"a", "c"}},
		},
		`serviceaccounts "a" is forbidden: User "library" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ci"`: {UserName: "system:serviceaccount:ci:a"},
	} {
		require.EqualError(t, as("lib", who), want)
	}
	require.True(t, apierrors.IsUnauthorized(as("stolen", rest.ImpersonationConfig{})))
	require.True(t, apierrors.IsForbidden(as("", rest.ImpersonationConfig{})), "anonymous")
}

func TestAClientCertificateComesBeforeAToken(t *testing.T) {
	s := regiontest.NewServer(regiontest.Options{Tokens: map[string]regiontest.User{"alice": {Name: "alice"}}})
	defer s.Close()
	kubeconfig, err := s.Listen(t.Context())
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	config.BearerToken = "alice"
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.Resource(namespaces).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	config.CertData, config.KeyData = nil, nil
	client, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.Resource(namespaces).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "system:admin", s.Requests()[0].User.Name)
	require.Equal(t, "alice", s.Requests()[1].User.Name)
}

// A list that a field selector limits to one name is authorized for the object with this name.
func TestASelectedNameIsAuthorized(t *testing.T) {
	var names []string
	s := regiontest.NewServer(regiontest.Options{Authorize: func(r regiontest.Request) error {
		if r.Resource == "configmaps" {
			names = append(names, r.Verb+" "+r.Name)
		}
		return nil
	}})
	t.Cleanup(s.Close)
	client := dynamic.NewForConfigOrDie(s.Config()).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	_, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	require.NoError(t, err)
	_, err = client.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=a"})
	require.NoError(t, err)
	require.Equal(t, []string{"list a", "list "}, names)
}
