// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// providers are the user entries that the tools of cloud providers write into a kubeconfig, the plugin that each of them
// runs, and the version of ExecCredential in which this plugin answers. docs/credentials.md describes them.
var providers = map[string]struct {
	user, plugin, version string
	args                  string
}{
	"EKS": {`exec:
  apiVersion: client.authentication.k8s.io/v1beta1
  command: aws
  args: [--region, eu-west-1, eks, get-token, --cluster-name, prod, --output, json]`, "aws", "v1beta1",
		"--region eu-west-1 eks get-token --cluster-name prod --output json"},
	"GKE": {`exec:
  apiVersion: client.authentication.k8s.io/v1beta1
  command: gke-gcloud-auth-plugin
  installHint: Install gke-gcloud-auth-plugin for use with kubectl
  provideClusterInfo: true`, "gke-gcloud-auth-plugin", "v1beta1", ""},
	"AKS": {`exec:
  apiVersion: client.authentication.k8s.io/v1beta1
  command: kubelogin
  args: [get-token, --login, workloadidentity, --server-id, 6dae42f8-4368-4678-94ff-3960e28e3630]
  provideClusterInfo: false`, "kubelogin", "v1beta1",
		"get-token --login workloadidentity --server-id 6dae42f8-4368-4678-94ff-3960e28e3630"},
	"OpenShift with OIDC": {`exec:
  apiVersion: client.authentication.k8s.io/v1
  command: oc
  args: [get-token, --issuer-url=https://issuer.example.com, --client-id=atoll, "--callback-address=127.0.0.1:0"]
  interactiveMode: IfAvailable
  provideClusterInfo: false`, "oc", "v1",
		"get-token --issuer-url=https://issuer.example.com --client-id=atoll --callback-address=127.0.0.1:0"},
	"a token": {"token: of-atoll", "", "", ""},
}

// The kubeconfigs of cloud providers work as their tools write them, if the program allows the plugin by its path. A
// stand-in for the plugin speaks the exec protocol and records its arguments.
func TestKubeconfigsOfProviders(t *testing.T) {
	server := regiontest.NewServer(regiontest.Options{Tokens: map[string]regiontest.User{"of-atoll": {Name: "atoll"}}})
	t.Cleanup(server.Close)
	listening, err := server.Listen(t.Context())
	require.NoError(t, err)
	for name, p := range providers {
		t.Run(name, func(t *testing.T) {
			var k clientcmdv1.Config
			require.NoError(t, yaml.Unmarshal(listening, &k))
			k.AuthInfos[0].AuthInfo = clientcmdv1.AuthInfo{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(p.user), &k.AuthInfos[0].AuthInfo))
			data, err := yaml.Marshal(k)
			require.NoError(t, err)
			var trust region.Trust
			dir := t.TempDir()
			if p.plugin != "" {
				_, err := region.ParseKubeconfig(data, trust)
				require.ErrorContains(t, err, "users[0].user.exec")
				trust.Exec = []string{standIn(t, dir, p.plugin, p.version)}
			}
			credentials, err := region.ParseKubeconfig(data, trust)
			require.NoError(t, err)
			conn, err := region.NewConn(region.Peer{Name: "eu", Credentials: credentials}, region.ConnOptions{})
			require.NoError(t, err)
			t.Cleanup(conn.Close)
			_, err = conn.UID(t.Context())
			require.NoError(t, err)
			if p.plugin == "" {
				return
			}
			args, err := os.ReadFile(filepath.Join(dir, "args"))
			require.NoError(t, err)
			require.Equal(t, p.args, strings.TrimSpace(string(args)))
			info, err := os.ReadFile(filepath.Join(dir, "info"))
			require.NoError(t, err)
			require.Contains(t, string(info), `"interactive":false`, "no plugin may ask a person")
			require.Equal(t, name == "GKE", strings.Contains(string(info), k.Clusters[0].Cluster.Server), "the cluster is shown to plugins that ask for it")
		})
	}
}

// standIn makes a credential plugin that answers with a token, and returns its path.
func standIn(t *testing.T, dir, name, version string) string {
	t.Helper()
	credential, err := json.Marshal(map[string]any{
		"apiVersion": "client.authentication.k8s.io/" + version, "kind": "ExecCredential", "status": map[string]string{"token": "of-atoll"},
	})
	require.NoError(t, err)
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >%[1]s/args\necho \"$KUBERNETES_EXEC_INFO\" >%[1]s/info\necho '%[2]s'\n", dir, credential)
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700)) //nolint:gosec // it is to be run
	return path
}
