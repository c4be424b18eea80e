// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/maintest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const namespace = "fleet"

// definitions are the CRD of ClusterProfiles, as the required version of its module has it.
var definitions = sync.OnceValues(func() (*regiontest.Definitions, error) {
	dir, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api").Output()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(dir)), "config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml"))
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return nil, err
	}
	return regiontest.Compile(&crd)
})

// newHub returns a server with the type ClusterProfile and the namespace of the tests.
func newHub(t testing.TB, opts regiontest.Options) *regiontest.Server {
	t.Helper()
	var err error
	opts.Name = "hub"
	opts.Definitions, err = definitions()
	require.NoError(t, err)
	s := regiontest.NewServer(opts)
	t.Cleanup(s.Close)
	_, err = apiOf(t, s).Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(t.Context(), parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}"), metav1.CreateOptions{})
	require.NoError(t, err)
	return s
}

// apiOf returns clients of the server with all rights.
func apiOf(t testing.TB, s *regiontest.Server) region.API {
	t.Helper()
	config := s.Config()
	config.BearerToken = "admin"
	api, err := region.APIFor(config)
	require.NoError(t, err)
	return api
}

func profilesOf(t testing.TB, s *regiontest.Server) dynamic.ResourceInterface {
	t.Helper()
	return apiOf(t, s).Dynamic().Resource(resource()).Namespace(namespace)
}

// parse returns the object in a YAML text.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &obj.Object))
	return obj
}

// profile returns a ClusterProfile with this status in YAML.
func profile(t testing.TB, name, status string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, metadata: {name: "+name+", namespace: "+namespace+
		", labels: {team: "+name+"}}, spec: {clusterManager: {name: fleet}}, status: "+status+"}")
}

// put creates or changes a profile with its status.
func put(t testing.TB, s *regiontest.Server, obj *unstructured.Unstructured) {
	t.Helper()
	profiles := profilesOf(t, s)
	present, err := profiles.Get(t.Context(), obj.GetName(), metav1.GetOptions{})
	if err != nil {
		present, err = profiles.Create(t.Context(), obj, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	obj.SetResourceVersion(present.GetResourceVersion())
	_, err = profiles.UpdateStatus(t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func remove(t testing.TB, s *regiontest.Server, name string) {
	t.Helper()
	require.NoError(t, profilesOf(t, s).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// access is the status of a profile whose cluster is at the address.
func access(address string, more ...string) string {
	return "{accessProviders: [{name: fleet, cluster: {server: '" + address + "'}}]" + strings.Join(append([]string{""}, more...), ", ") + "}"
}

// fleet is the plugin of the tests.
func fleet() Plugin {
	return Plugin{Name: "fleet", Exec: clientcmdv1.ExecConfig{Command: "/opt/login", APIVersion: "client.authentication.k8s.io/v1"}}
}

// optionsOf returns checked options.
func optionsOf(t testing.TB, opts Options) *Options {
	t.Helper()
	opts.Namespace = namespace
	if opts.Plugins == nil {
		opts.Plugins = []Plugin{fleet()}
	}
	opts, err := opts.checked()
	require.NoError(t, err)
	return &opts
}

// writes returns the requests that change something.
func writes(s *regiontest.Server) []string {
	var all []string
	for _, r := range s.Requests() {
		switch r.Verb {
		case "get", "list", "watch":
		default:
			all = append(all, r.Verb+" "+r.Path)
		}
	}
	return all
}

// addProperties makes the server serve ClusterProperties of the About API in one version, with these.
func addProperties(t testing.TB, s *regiontest.Server, version string, properties map[string]string) {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(`
metadata: {name: clusterproperties.about.k8s.io, annotations: {api-approved.kubernetes.io: 'unapproved, for tests'}}
spec:
  group: about.k8s.io
  scope: Cluster
  names: {kind: ClusterProperty, listKind: ClusterPropertyList, plural: clusterproperties, singular: clusterproperty}
  versions:
  - name: VERSION
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, required: [value], properties: {value: {type: string, minLength: 1}}}}
`, "VERSION", version)), &crd))
	require.NoError(t, s.AddCRD(&crd))
	for name, value := range properties {
		_, err := apiOf(t, s).Dynamic().Resource(schema.GroupVersionResource{Group: "about.k8s.io", Version: version, Resource: "clusterproperties"}).
			Create(t.Context(), parse(t, "{apiVersion: about.k8s.io/"+version+", kind: ClusterProperty, metadata: {name: "+name+"}, spec: {value: "+value+"}}"), metav1.CreateOptions{})
		require.NoError(t, err)
	}
}
