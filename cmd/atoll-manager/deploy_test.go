// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
)

const (
	system  = "kubecarrier-system"
	program = "atoll-manager"
)

// documents returns the documents of a kind in a text, as T. Unknown fields fail the test.
func documents[T any](t *testing.T, text []byte, kind string) []T {
	t.Helper()
	var all []T
	for doc := range bytes.SplitSeq(text, []byte("---\n")) {
		var head struct{ Kind string }
		require.NoError(t, yaml.Unmarshal(doc, &head))
		if head.Kind != kind {
			continue
		}
		var obj T
		require.NoError(t, yaml.UnmarshalStrict(doc, &obj))
		all = append(all, obj)
	}
	return all
}

// manifests returns the documents of a kind in the files below deploy, as T.
func manifests[T any](t *testing.T, kind string, files ...string) (all []T) {
	t.Helper()
	for _, file := range files {
		raw, err := os.ReadFile(filepath.Join("deploy", file))
		require.NoError(t, err)
		all = append(all, documents[T](t, raw, kind)...)
	}
	return all
}

func only[T any](t *testing.T, kind, file string) T {
	t.Helper()
	all := manifests[T](t, kind, file)
	require.Len(t, all, 1, kind)
	return all[0]
}

func configured(t *testing.T) *config.Configuration {
	t.Helper()
	c, err := config.Parse([]byte(only[corev1.ConfigMap](t, "ConfigMap", "config.yaml").Data["manager.yaml"]))
	require.NoError(t, err)
	return c
}

// The program prints exactly the roles in the manifests, and the manifests bind them all: in the central plane to the Pods,
// in each peer to the user of the kubeconfig.
func TestDeployGrantsTheLeast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.yaml")
	require.NoError(t, os.WriteFile(path, []byte(only[corev1.ConfigMap](t, "ConfigMap", "config.yaml").Data["manager.yaml"]), 0o600))
	for where, subject := range map[string]rbacv1.Subject{
		"plane": {Kind: "ServiceAccount", Name: program, Namespace: system},
		"peer":  {APIGroup: rbacv1.GroupName, Kind: "User", Name: "atoll"},
	} {
		var stdout, stderr bytes.Buffer
		require.Zero(t, run(t.Context(), []string{"--config", path, "--rights", where}, &stdout, &stderr), stderr.String())
		file := where + "-rbac.yaml"
		var roles, bound []string
		for _, role := range documents[rbacv1.ClusterRole](t, stdout.Bytes(), "ClusterRole") {
			require.Contains(t, manifests[rbacv1.ClusterRole](t, "ClusterRole", file), role)
			roles = append(roles, "ClusterRole "+role.Name)
		}
		for _, role := range documents[rbacv1.Role](t, stdout.Bytes(), "Role") {
			require.Contains(t, manifests[rbacv1.Role](t, "Role", file), role)
			roles = append(roles, "Role "+role.Name)
		}
		require.Len(t, slices.Concat(
			slices.Repeat([]int{0}, len(manifests[rbacv1.ClusterRole](t, "ClusterRole", file))), slices.Repeat([]int{0}, len(manifests[rbacv1.Role](t, "Role", file))),
		), len(roles), where)
		for _, b := range manifests[rbacv1.ClusterRoleBinding](t, "ClusterRoleBinding", file) {
			bound = append(bound, b.RoleRef.Kind+" "+b.RoleRef.Name)
			require.Equal(t, []rbacv1.Subject{subject}, b.Subjects)
		}
		for _, b := range manifests[rbacv1.RoleBinding](t, "RoleBinding", file) {
			require.Equal(t, system, b.Namespace)
			bound = append(bound, b.RoleRef.Kind+" "+b.RoleRef.Name)
			require.Equal(t, []rbacv1.Subject{subject}, b.Subjects)
		}
		require.ElementsMatch(t, roles, bound, where)
	}
}

// The Deployment runs this program in two replicas, with valid arguments and a valid configuration in a mount.
func TestDeployment(t *testing.T) {
	d := only[appsv1.Deployment](t, "Deployment", "deployment.yaml")
	require.Equal(t, system, d.Namespace)
	require.EqualValues(t, 2, *d.Spec.Replicas)
	require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
	pod := d.Spec.Template.Spec
	require.Equal(t, program, pod.ServiceAccountName)
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]
	require.Equal(t, "POD_NAME", c.Env[0].Name, "each replica has an identity of its own")
	require.Equal(t, "metadata.name", c.Env[0].ValueFrom.FieldRef.FieldPath)
	require.Equal(t, []string{"--config=/etc/atoll-manager/manager.yaml"}, c.Args)
	require.Len(t, c.VolumeMounts, 1)
	require.Equal(t, "/etc/atoll-manager", c.VolumeMounts[0].MountPath)

	parsed := configured(t)
	require.Equal(t, system, parsed.Central.Namespace)
	require.Len(t, c.Ports, 1)
	require.Equal(t, parsed.Health.Address, ":"+strings.TrimSpace(string(yamlOf(t, c.Ports[0].ContainerPort))))
	require.Equal(t, "/livez", c.LivenessProbe.HTTPGet.Path)
	require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
	require.Equal(t, d.Spec.Template.Labels, only[policyv1.PodDisruptionBudget](t, "PodDisruptionBudget", "deployment.yaml").Spec.Selector.MatchLabels)
	require.Equal(t, d.Spec.Template.Labels, only[networkingv1.NetworkPolicy](t, "NetworkPolicy", "network.yaml").Spec.PodSelector.MatchLabels)
}

// kustomize has each file but the one for the peers.
func TestKustomization(t *testing.T) {
	files, err := filepath.Glob("deploy/*.yaml")
	require.NoError(t, err)
	var kustomization struct{ Resources []string }
	raw, err := os.ReadFile("deploy/kustomization.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &kustomization))
	for _, file := range files {
		name := filepath.Base(file)
		require.Equal(t, name != "kustomization.yaml" && name != "peer-rbac.yaml", slices.Contains(kustomization.Resources, name), name)
	}
}

func yamlOf(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := yaml.Marshal(v)
	require.NoError(t, err)
	return raw
}
