// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/pki"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
	"github.com/atoll-dev/atoll/region"
)

const (
	installation = "kubecarrier-system"
	account      = "atoll-gateway" // the ServiceAccount of the Pods
	gatewayUser  = "atoll-gateway" // of the gateway, in the peers
	audience     = "https://gateway.kubecarrier-system.svc"
	program      = "../../../../cmd/atoll-gateway"

	// The mounts of the Pods. Their files are below the folder of the world, or of the replica.
	mounted = "/etc/atoll-gateway"
	cached  = "/var/cache/atoll-gateway"
)

// world is a central plane with two peers, which grant the gateway the rights that its manifests have and it prints, and
// the files of the gateways before them.
type world struct {
	t       *testing.T
	central *plane.Plane
	peers   map[string]*plane.Plane
	dir     string
	clients *pki.Authority // of client certificates
	binary  string
	origins []any // whose pages may use the gateways
}

func newWorld(t *testing.T) *world {
	t.Helper()
	planes := planetest.NewAll(t, plane.Options{Name: "central"}, plane.Options{Name: "eu-west"}, plane.Options{Name: "us-east"})
	w := &world{t: t, central: planes[0], peers: map[string]*plane.Plane{"eu-west": planes[1], "us-east": planes[2]}, dir: t.TempDir()}
	api, err := region.APIFor(w.central.Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{})
	require.NoError(t, err)
	planetest.Apply(t, w.central, "{apiVersion: v1, kind: Namespace, metadata: {name: "+installation+"}}")
	w.binary = process.Build(t, program)
	w.grantCentral()
	for _, p := range w.peers {
		w.grantPeer(p)
		w.register(p)
	}
	kubeconfig, err := w.central.ServiceAccountKubeconfig(t.Context(), installation, account)
	require.NoError(t, err)
	w.write("central.kubeconfig", kubeconfig)
	key := make([]byte, 32)
	_, err = rand.Read(key)
	require.NoError(t, err)
	w.write(mounted+"/keys/keys", []byte(base64.StdEncoding.EncodeToString(key)))
	w.clients = pki.New(t, "clients")
	w.write(mounted+"/clients/ca.crt", w.clients.PEM())
	w.certify()
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name string, data []byte) {
	w.t.Helper()
	require.NoError(w.t, os.MkdirAll(filepath.Dir(w.path(name)), 0o700))
	require.NoError(w.t, os.WriteFile(w.path(name), data, 0o600))
}

// configure writes the configuration of the manifests into the folder of a replica, and returns its path. It differs in
// what only a Pod has: paths, ports, and the credentials of its ServiceAccount.
func (w *world) configure(dir string) string {
	w.t.Helper()
	values := map[string]any{
		"serving.address": "127.0.0.1:0", "health.address": "127.0.0.1:0",
		"source.central.kubeconfigFile": w.path("central.kubeconfig"), "authentication.tokenReview.kubeconfigFile": w.path("central.kubeconfig"),
		"audit.file": filepath.Join(dir, "audit.log"),
		// Shorter than in the manifests, so that the test need not wait.
		"source.cacheWait": "2s", "authentication.tokenReview.cacheTTL": "1s", "drain.delay": "300ms",
		// Both callers exist only here.
		"authentication.mappings": []any{map[string]any{"user": "system:serviceaccount:ci:deployer", "as": "hub:deployer"}},
	}
	if w.origins != nil {
		values["serving.allowedOrigins"] = w.origins
	}
	return process.Configure(w.t, program, "gateway.yaml", dir, strings.NewReplacer(mounted, w.path(mounted), cached, dir), values)
}

// grantCentral applies the roles of the manifests, which are those that the program prints.
func (w *world) grantCentral() {
	w.t.Helper()
	roles, err := os.ReadFile(filepath.Join(program, "deploy", "rbac.yaml"))
	require.NoError(w.t, err)
	planetest.Apply(w.t, w.central, string(roles))
}

// rights returns the roles that the program prints.
func (w *world) rights(args ...string) string {
	w.t.Helper()
	return process.Output(w.t, w.binary, append([]string{"--config", w.configure(w.t.TempDir()), "--rights"}, args...)...)
}

// grantPeer lets the gateway act as alice and hub:deployer, and grants these two their own rights.
func (w *world) grantPeer(p *plane.Plane) {
	w.t.Helper()
	planetest.Apply(w.t, p, w.rights("peer", "--as", "alice", "--as-group", "dev")) // hub:deployer has a mapping
	bind := func(name, kind, subject string) {
		planetest.Apply(w.t, p, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: %[2]s, name: %[3]q}]}`, name, kind, subject))
	}
	bind("atoll-impersonate", "User", gatewayUser)
	const own = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s}, rules: [{apiGroups: [""], resources: [configmaps, pods], verbs: [%s]}]}`
	planetest.Apply(w.t, p, fmt.Sprintf(own, "dev", "get, list, watch"))
	bind("dev", "Group", "dev")
	planetest.Apply(w.t, p, fmt.Sprintf(own, "deployer", "create, delete, get, list, patch, update, watch"))
	bind("deployer", "User", "hub:deployer")
}

// register makes p an accepted Peer of the central plane, with the region NAME-1.loodse.
func (w *world) register(p *plane.Plane) {
	w.t.Helper()
	kubeconfig, err := p.KubeconfigFor(gatewayUser)
	require.NoError(w.t, err)
	planetest.Apply(w.t, w.central, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, stringData: {kubeconfig: %q}}", p.Name(), installation, kubeconfig))
	system, err := planetest.Dynamic(w.t, p.Config()).Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Get(w.t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	require.NoError(w.t, err)
	peer := &unstructured.Unstructured{}
	require.NoError(w.t, yaml.Unmarshal([]byte(fmt.Sprintf(`{apiVersion: master.kubecarrier.io/v1alpha1, kind: Peer, metadata: {name: %[1]s}, spec: {kubeconfigSecret: {name: %[1]s}},
		status: {clusterUID: %[2]s, regions: [{provider: loodse, name: %[1]s-1}]}}`, p.Name(), system.GetUID())), &peer.Object))
	peers := planetest.Dynamic(w.t, w.central.Config()).Resource(schema.GroupVersionResource{Group: "master.kubecarrier.io", Version: "v1alpha1", Resource: "peers"})
	for _, subresources := range [][]string{nil, {"status"}} {
		_, err = peers.Apply(w.t.Context(), p.Name(), peer, metav1.ApplyOptions{FieldManager: "test", Force: true}, subresources...)
		require.NoError(w.t, err)
	}
}

// token returns a token of the ServiceAccount ci/deployer of the central plane.
func (w *world) token(audience string) string {
	w.t.Helper()
	d := planetest.Dynamic(w.t, w.central.Config())
	planetest.Apply(w.t, w.central, "{apiVersion: v1, kind: Namespace, metadata: {name: ci}}")
	planetest.Apply(w.t, w.central, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: deployer, namespace: ci}}")
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": map[string]any{"name": "deployer", "namespace": "ci"},
		"spec": map[string]any{"audiences": []any{audience}},
	}}
	answer, err := d.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace("ci").
		Create(w.t.Context(), request, metav1.CreateOptions{}, "token")
	require.NoError(w.t, err)
	token, _, err := unstructured.NestedString(answer.Object, "status", "token")
	require.NoError(w.t, err)
	return token
}

// certify writes a new serving certificate, and its authority for callers.
func (w *world) certify() {
	w.t.Helper()
	own := pki.New(w.t, "gateway")
	certificate, key := own.Server(w.t)
	w.write(mounted+"/tls/ca.crt", own.PEM())
	w.write(mounted+"/tls/tls.crt", certificate)
	w.write(mounted+"/tls/tls.key", key)
}
