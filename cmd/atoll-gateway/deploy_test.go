// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
)

const namespace = "kubecarrier-system"

// manifests returns the documents of a kind below deploy, as T. Unknown fields fail the test.
func manifests[T any](t *testing.T, kind string) []T {
	t.Helper()
	files, err := filepath.Glob("deploy/*.yaml")
	require.NoError(t, err)
	var all []T
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for doc := range bytes.SplitSeq(raw, []byte("\n---\n")) {
			var head struct {
				Kind     string
				Metadata struct{ Namespace string }
			}
			require.NoError(t, yaml.Unmarshal(doc, &head))
			if head.Kind != kind {
				continue
			}
			if !strings.HasPrefix(kind, "Cluster") {
				require.Equal(t, namespace, head.Metadata.Namespace, kind)
			}
			var obj T
			require.NoError(t, yaml.UnmarshalStrict(doc, &obj), "%s in %s", kind, file)
			all = append(all, obj)
		}
	}
	return all
}

func only[T any](t *testing.T, kind string) T {
	t.Helper()
	all := manifests[T](t, kind)
	require.Len(t, all, 1, kind)
	return all[0]
}

// The Deployment runs this program with valid arguments and a valid configuration, whose files are all in mounts.
func TestDeployment(t *testing.T) {
	d := only[appsv1.Deployment](t, "Deployment")
	require.EqualValues(t, 2, *d.Spec.Replicas)
	require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
	pod := d.Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]

	files := only[corev1.ConfigMap](t, "ConfigMap")
	require.Equal(t, []string{"--config=/etc/atoll-gateway/config/gateway.yaml"}, c.Args)
	parsed, err := config.Parse([]byte(files.Data["gateway.yaml"]))
	require.NoError(t, err)
	writable := map[string]bool{}
	for _, mount := range c.VolumeMounts {
		writable[mount.MountPath] = !mount.ReadOnly
	}
	for path, written := range map[string]bool{
		"/etc/atoll-gateway/config/gateway.yaml": false, parsed.Serving.CertificateFile: false, parsed.Serving.KeyFile: false,
		parsed.Authentication.ClientCertificates.CAFile: false, parsed.TokenKeysFile: false, parsed.Source.CacheDirectory + "/peers.json": true,
	} {
		mounted, ok := writable[filepath.Dir(path)]
		require.True(t, ok, "%s is in no mount", path)
		require.Equal(t, written, mounted, path)
	}

	ports := map[string]string{}
	for _, p := range c.Ports {
		ports[p.Name] = ":" + strings.TrimSpace(string(yamlOf(t, p.ContainerPort)))
	}
	require.Equal(t, map[string]string{"https": parsed.Serving.Address, "health": parsed.Health.Address}, ports)
	require.Equal(t, "/livez", c.LivenessProbe.HTTPGet.Path)
	require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
	require.Greater(t, time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second, parsed.Drain.Delay.Duration+parsed.Drain.Timeout.Duration)
	unready := time.Duration(c.ReadinessProbe.PeriodSeconds*c.ReadinessProbe.FailureThreshold) * time.Second
	require.Greater(t, parsed.Drain.Delay.Duration, unready, "the drain outlasts the probe that finds it")
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
}

// The other objects select the Pods of the Deployment, and kustomize has each file.
func TestSelectors(t *testing.T) {
	labels := only[appsv1.Deployment](t, "Deployment").Spec.Template.Labels
	require.Equal(t, labels, only[policyv1.PodDisruptionBudget](t, "PodDisruptionBudget").Spec.Selector.MatchLabels)
	require.Equal(t, labels, only[corev1.Service](t, "Service").Spec.Selector)
	require.Equal(t, labels, only[networkingv1.NetworkPolicy](t, "NetworkPolicy").Spec.PodSelector.MatchLabels)
	files, err := filepath.Glob("deploy/*.yaml")
	require.NoError(t, err)
	var kustomization struct{ Resources []string }
	raw, err := os.ReadFile("deploy/kustomization.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &kustomization))
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" {
			require.Contains(t, kustomization.Resources, name)
		}
	}
	require.Len(t, kustomization.Resources, len(files)-1)
}

// Each role is bound to the Pods. The suites on real API servers run the program with these roles.
func TestRoles(t *testing.T) {
	account := only[corev1.ServiceAccount](t, "ServiceAccount")
	require.Equal(t, account.Name, only[appsv1.Deployment](t, "Deployment").Spec.Template.Spec.ServiceAccountName)
	pods := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	cluster, role := only[rbacv1.ClusterRoleBinding](t, "ClusterRoleBinding"), only[rbacv1.RoleBinding](t, "RoleBinding")
	require.Equal(t, pods, cluster.Subjects)
	require.Equal(t, pods, role.Subjects)
	require.Equal(t, only[rbacv1.ClusterRole](t, "ClusterRole").Name, cluster.RoleRef.Name)
	require.Equal(t, only[rbacv1.Role](t, "Role").Name, role.RoleRef.Name)
}

func yamlOf(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := yaml.Marshal(v)
	require.NoError(t, err)
	return raw
}
