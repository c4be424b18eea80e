// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The roles of the manifests are those that the program prints for the configuration of the manifests.
func TestDeployGrantsTheLeast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	require.NoError(t, os.WriteFile(path, []byte(only[corev1.ConfigMap](t, "ConfigMap").Data["gateway.yaml"]), 0o600))
	cluster, namespaced := printed(t, "--config", path, "--rights", "plane")
	require.Equal(t, manifests[rbacv1.ClusterRole](t, "ClusterRole"), cluster)
	require.Equal(t, manifests[rbacv1.Role](t, "Role"), namespaced)
}

func TestRights(t *testing.T) {
	const ways, mapped = `authentication: {tokenFile: {file: DIR/tokens.csv}`, `, mappings: [{user: "system:serviceaccount:ci:deployer", as: "hub:deployer"}, {group: "system:admins", as: ops}]`
	const central = "source: {central: {namespace: regions}}"
	kubeSystem := right("", "namespaces", "get", "kube-system")
	alice, dev := right("", "users", "impersonate", "alice"), right("", "groups", "impersonate", "dev")
	reviews := right("authentication.k8s.io", "tokenreviews", "create")
	peers := right("master.kubecarrier.io", "peers", "list, watch")
	for _, tt := range []struct {
		name    string
		replace []string // old and new parts of the configuration
		args    []string
		want    map[string][]string // by role
	}{
		{"callers", nil, []string{"peer", "--as", "alice", "--as-group", "dev"}, map[string][]string{"atoll-impersonate": {alice, dev, kubeSystem}}},
		{"a service account", nil, []string{"peer", "--as", "system:serviceaccount:ci:deployer"}, map[string][]string{
			"atoll-impersonate": {kubeSystem}, "ci/atoll-impersonate": {right("", "serviceaccounts", "impersonate", "deployer")},
		}},
		{"names of mappings", []string{ways, ways + mapped}, []string{"peer", "--as", "alice"}, map[string][]string{
			"atoll-impersonate": {right("", "users", "impersonate", "alice, hub:deployer"), right("", "groups", "impersonate", "ops"), kubeSystem},
		}},
		{"UIDs and extra values", []string{ways, ways + ", passUIDs: true, extraKeys: [scopes]"}, []string{"peer", "--as", "alice", "--as-uid", "1", "--as-extra", "scopes=view"}, map[string][]string{
			"atoll-impersonate": {alice, right("authentication.k8s.io", "uids", "impersonate", "1"), right("authentication.k8s.io", "userextras/scopes", "impersonate", "view"), kubeSystem},
		}},
		{"callers' own tokens", []string{ways, "authentication: {passThrough: {}"}, []string{"peer"}, map[string][]string{"atoll-identity": {kubeSystem}}},
		{"a plane that reviews tokens", []string{"source: {file: DIR/peers.yaml}", central, ways, "authentication: {tokenReview: {audiences: [a]}"}, []string{"plane"}, map[string][]string{
			"atoll-gateway": {peers, kubeSystem, reviews}, "regions/atoll-gateway": {right("", "secrets", "get, list, watch")},
		}},
		{"a plane while tokens are reviewed elsewhere", []string{"source: {file: DIR/peers.yaml}", "source: {central: {}}", ways, "authentication: {tokenReview: {audiences: [a], peer: eu}"}, []string{"plane"}, map[string][]string{
			"atoll-gateway": {peers, kubeSystem}, "kubecarrier-system/atoll-gateway": {right("", "secrets", "get, list, watch")},
		}},
		{"tokens reviewed elsewhere", []string{ways, "authentication: {tokenReview: {audiences: [a], peer: eu}"}, []string{"tokenreview"}, map[string][]string{"atoll-token-reviews": {reviews}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cluster, namespaced := printed(t, append([]string{"--config", changed(t, tt.replace...), "--rights"}, tt.args...)...)
			got := map[string][]string{}
			for _, role := range cluster {
				require.Equal(t, "ClusterRole", role.Kind)
				got[role.Name] = texts(role.Rules)
			}
			for _, role := range namespaced {
				got[role.Namespace+"/"+role.Name] = texts(role.Rules)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// A coordinator's rights include those in the Roles of Accounts; the suites on real API servers use them.
func TestRightsOfFanout(t *testing.T) {
	cluster, _ := printed(t, "--config", changed(t, "drain:", "fanout: {logFile: DIR/log}\ndrain:"), "--rights", "peer", "--as", "alice")
	require.Len(t, cluster, 2)
	require.Equal(t, "atoll", cluster[0].Name)
	peersets := right("fanout.atoll.dev", "peersets", "create, get, update")
	require.Contains(t, texts(cluster[0].Rules), peersets)
	cluster, _ = printed(t, "--config", changed(t, "drain:", "fanout: {logFile: DIR/log}\ndrain:", "source: {file: DIR/peers.yaml}", "source: {central: {}}"), "--rights", "plane")
	require.Len(t, cluster, 2)
	require.Contains(t, texts(cluster[1].Rules), peersets)
}

func TestRightsRefused(t *testing.T) {
	config := changed(t)
	for want, args := range map[string][]string{
		`"all" is not known; accepted: plane, peer or tokenreview`:                                          {"--rights", "all"},
		"source.central is not set: the gateway uses no central plane":                                      {"--rights", "plane"},
		"authentication.tokenReview is not set: no API server is asked about tokens":                        {"--rights", "tokenreview"},
		"no user to impersonate is named; name the callers with --as USER and --as-group GROUP":             {"--rights", "peer"},
		"--as, --as-group, --as-uid and --as-extra need --rights peer":                                      {"--as", "alice"},
		"--as-uid: authentication.passUIDs is not set, so no UID is passed on":                              {"--rights", "peer", "--as", "alice", "--as-uid", "1"},
		`--as-extra "a=b": write KEY=VALUE, where KEY is one of authentication.extraKeys: `:                 {"--rights", "peer", "--as", "alice", "--as-extra", "a=b"},
		`group "system:masters" is one of Kubernetes' own: an impersonator would have its rights; name the`: {"--rights", "peer", "--as", "alice", "--as-group", "system:masters"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), append([]string{"--config", config}, args...), &stdout, &stderr), args)
		require.Contains(t, stderr.String(), "atoll-gateway: --rights: "+want)
		require.Empty(t, stdout.String())
	}
}

// changed returns the path of a configuration in which old texts are replaced.
func changed(t *testing.T, replace ...string) string {
	t.Helper()
	dir := folder(t)
	path := filepath.Join(dir, "gateway.yaml")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	text := strings.ReplaceAll(string(raw), dir, "DIR")
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, text, replace[i])
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600))
	return path
}

// printed runs the program and returns the roles that it prints.
func printed(t *testing.T, args ...string) (cluster []rbacv1.ClusterRole, namespaced []rbacv1.Role) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), args, &stdout, &stderr), stderr.String())
	for doc := range strings.SplitSeq(strings.TrimPrefix(stdout.String(), "---\n"), "---\n") {
		if strings.Contains(doc, "kind: ClusterRole\n") {
			var role rbacv1.ClusterRole
			require.NoError(t, yaml.UnmarshalStrict([]byte(doc), &role))
			cluster = append(cluster, role)
			continue
		}
		var role rbacv1.Role
		require.NoError(t, yaml.UnmarshalStrict([]byte(doc), &role))
		namespaced = append(namespaced, role)
	}
	return cluster, namespaced
}

// right returns the text of a rule.
func right(group, resource, verbs string, names ...string) string {
	return strings.TrimSpace(strings.Join([]string{verbs, resource + "." + group, strings.Join(names, ", ")}, " "))
}

func texts(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, right(strings.Join(r.APIGroups, ", "), strings.Join(r.Resources, ", "), strings.Join(r.Verbs, ", "), r.ResourceNames...))
	}
	return out
}
