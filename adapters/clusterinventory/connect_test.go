// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// standIn makes a credential plugin that answers with the token in the settings of the profile's cluster.
func standIn(t *testing.T) string {
	t.Helper()
	script := `#!/bin/sh
token=$(echo "$KUBERNETES_EXEC_INFO" | sed 's/.*"clusterName":"\([a-z]*\)".*/\1/')
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "'$token'"}}'
`
	path := filepath.Join(t.TempDir(), "login")
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700)) //nolint:gosec // it is to be run
	return path
}

// listen starts a server with TLS that accepts the token of its name, and returns the status of its profile.
func listen(t *testing.T, name, more string) (s *regiontest.Server, status string) {
	t.Helper()
	s = regiontest.NewServer(regiontest.Options{Name: name, Tokens: map[string]regiontest.User{
		name: {Name: "atoll", Groups: []string{"system:masters"}}, "admin": {Name: "admin", Groups: []string{"system:masters"}},
	}})
	t.Cleanup(s.Close)
	kubeconfig, err := s.Listen(t.Context())
	require.NoError(t, err)
	var k clientcmdv1.Config
	require.NoError(t, yaml.Unmarshal(kubeconfig, &k))
	at := k.Clusters[0].Cluster
	return s, fmt.Sprintf("{accessProviders: [{name: fleet, cluster: {server: '%s', certificate-authority-data: %s, extensions: ["+
		"{name: client.authentication.k8s.io/exec, extension: {clusterName: %s}}]}}], %s}",
		at.Server, base64.StdEncoding.EncodeToString(at.CertificateAuthorityData), name, more)
}

// A ring connects to the clusters of profiles through the plugin, each with its own token. A cluster with another ID than
// its profile's is not connected to.
func TestRing(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			hub := newHub(t, regiontest.Options{})
			eu, status := listen(t, "eu", expected)
			addProperties(t, eu, version, map[string]string{ClusterIDProperty: "one"})
			put(t, hub, profile(t, "eu", status))
			us, status := listen(t, "us", expected)
			addProperties(t, us, version, map[string]string{ClusterIDProperty: "two"})
			put(t, hub, profile(t, "us", status))
			_, status = listen(t, "asia", expected)
			put(t, hub, profile(t, "asia", status))

			plugin := Plugin{Name: "fleet", Exec: clientcmdv1.ExecConfig{
				Command: standIn(t), APIVersion: "client.authentication.k8s.io/v1", ProvideClusterInfo: true,
			}}
			source, err := New(apiOf(t, hub), Options{Namespace: namespace, Plugins: []Plugin{plugin}})
			require.NoError(t, err)
			kept, err := region.Keep(source, filepath.Join(t.TempDir(), "peers"), region.KeepOptions{Trust: source.Trust()})
			require.NoError(t, err)
			ring, err := region.NewRing(kept, region.Options{})
			require.NoError(t, err)
			logtest.Run(t, ring.Start)
			select {
			case <-ring.Synced():
			case <-time.After(time.Minute):
				t.Fatal("nothing was published")
			}
			for _, name := range []region.PeerName{"eu", "asia"} {
				conn, err := ring.Conn(name)
				require.NoError(t, err)
				_, err = conn.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), "default", metav1.GetOptions{})
				require.NoError(t, err)
			}
			_, err = ring.Conn("us")
			require.ErrorIs(t, err, region.ErrOtherCluster)
			for _, r := range us.Requests() {
				if r.Verb != "create" {
					require.Contains(t, r.Path, "clusterproperties", "nothing else is sent to a cluster that is not verified")
				}
			}
		})
	}
}

// If the credentials may not read the ID, the error names the right.
func TestClusterIDForbidden(t *testing.T) {
	eu, _ := listen(t, "eu", "")
	eu.Inject(regiontest.Fault{Resource: schema.GroupResource{Group: "about.k8s.io", Resource: "clusterproperties"}, Times: -1, Do: regiontest.Refuse(403)})
	addProperties(t, eu, "v1beta1", nil)
	conn, err := region.FromConfig(eu.Config())
	require.NoError(t, err)
	v := newVerifier(func() {})
	require.ErrorContains(t, v.want(region.Peer{Name: "eu", Credentials: conn}, "one").refusal, "was not read yet")
	again, err := v.verify(t.Context(), "eu")
	require.NoError(t, err)
	require.Equal(t, verifyRetry, again)
	got := v.want(region.Peer{Name: "eu", Credentials: conn}, "one")
	require.ErrorContains(t, got.refusal, "grant get of clusterproperties.about.k8s.io")
	require.False(t, got.withheld)
}
