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
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/rights"
)

const system = "kubecarrier-system"

// manifests returns the documents of the given kind in a file below deploy, as T.
func manifests[T any](t *testing.T, file, kind string) []T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("deploy", file))
	require.NoError(t, err)
	var all []T
	for doc := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		var head struct {
			Kind string `json:"kind"`
		}
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

// needed returns the roles that all loops need in the given places. The central plane is a peer,
// too, so it has the places inPeer and inPlane. The loop catalog works only in the central plane.
func needed(places ...rights.Place) (cluster []rbacv1.ClusterRole, namespaced []rbacv1.Role) {
	for _, name := range rights.LoopNames() {
		for _, place := range places {
			if name == "catalog" && !place.Central {
				continue
			}
			c, n, _ := rights.Loop(name, place)
			for _, r := range c {
				if !slices.ContainsFunc(cluster, func(have rbacv1.ClusterRole) bool { return have.Name == r.Name }) {
					cluster = append(cluster, *r)
				}
			}
			for _, r := range n {
				namespaced = append(namespaced, *r)
			}
		}
	}
	return cluster, namespaced
}

var (
	inPlane = rights.Place{Central: true, Namespace: system}
	inPeer  = rights.Place{}
)

// The manifests have exactly the roles that the loops need. In the central plane they bind all
// these roles to the Pods.
func TestDeployGrantsTheLeast(t *testing.T) {
	cluster, namespaced := needed(inPeer, inPlane)
	require.ElementsMatch(t, cluster, manifests[rbacv1.ClusterRole](t, "plane-rbac.yaml", "ClusterRole"))
	require.ElementsMatch(t, namespaced, manifests[rbacv1.Role](t, "plane-rbac.yaml", "Role"))
	var bound []string
	for _, b := range manifests[rbacv1.ClusterRoleBinding](t, "plane-rbac.yaml", "ClusterRoleBinding") {
		bound = append(bound, b.RoleRef.Kind+" "+b.RoleRef.Name)
		requirePods(t, b.Subjects)
	}
	for _, b := range manifests[rbacv1.RoleBinding](t, "plane-rbac.yaml", "RoleBinding") {
		require.Equal(t, system, b.Namespace)
		bound = append(bound, b.RoleRef.Kind+" "+b.RoleRef.Name)
		requirePods(t, b.Subjects)
	}
	var roles []string
	for _, r := range cluster {
		roles = append(roles, "ClusterRole "+r.Name)
	}
	for _, r := range namespaced {
		roles = append(roles, "Role "+r.Name)
	}
	require.ElementsMatch(t, roles, bound)

	cluster, namespaced = needed(inPeer)
	require.Empty(t, namespaced)
	require.ElementsMatch(t, cluster, manifests[rbacv1.ClusterRole](t, "peer-rbac.yaml", "ClusterRole"))
	require.Len(t, manifests[rbacv1.ClusterRoleBinding](t, "peer-rbac.yaml", "ClusterRoleBinding"), len(cluster))
}

func requirePods(t *testing.T, subjects []rbacv1.Subject) {
	t.Helper()
	require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "atoll-controllermanager", Namespace: system}}, subjects)
}

// The Deployment runs this program with valid arguments, in two replicas.
func TestDeployment(t *testing.T) {
	deployments := manifests[appsv1.Deployment](t, "deployment.yaml", "Deployment")
	require.Len(t, deployments, 1)
	d := deployments[0]
	require.Equal(t, system, d.Namespace)
	require.EqualValues(t, 2, *d.Spec.Replicas)
	require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
	pod := d.Spec.Template.Spec
	require.Equal(t, "atoll-controllermanager", pod.ServiceAccountName)
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]
	require.Equal(t, "POD_NAME", c.Env[0].Name, "each replica has an identity of its own")
	require.Equal(t, "metadata.name", c.Env[0].ValueFrom.FieldRef.FieldPath)

	opts, err := parse(c.Args)
	require.NoError(t, err)
	require.Equal(t, system, opts.Namespace)
	ports := map[string]string{}
	for _, p := range c.Ports {
		ports[p.Name] = ":" + strings.TrimSpace(string(yamlOf(t, p.ContainerPort)))
	}
	require.Equal(t, map[string]string{"health": opts.HealthAddress, "metrics": opts.MetricsAddress}, ports)
	require.Equal(t, "/healthz", c.LivenessProbe.HTTPGet.Path)
	require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
}

func yamlOf(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := yaml.Marshal(v)
	require.NoError(t, err)
	return raw
}
