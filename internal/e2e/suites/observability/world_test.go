// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/pki"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
	"github.com/atoll-dev/atoll/region"
)

const (
	installation = "kubecarrier-system"
	provider     = "loodse"
	cluster      = "edge" // the SyncTarget

	// soon is the timeout of each condition. It is much longer than a condition takes, since the machine may be busy.
	soon = 2 * time.Minute
)

var (
	accounts     = schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
	peers        = schema.GroupVersionResource{Group: "master.kubecarrier.io", Version: "v1alpha1", Resource: "peers"}
	regionClaims = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "regionclaims"}
	services     = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// world is an installation with the regions eu-1.loodse and local-1.loodse. The latter is in the central plane.
type world struct {
	t                *testing.T
	central, eu      *plane.Plane
	dir              string
	servers, clients *pki.Authority
	address          string // of the gateway
}

// newWorld starts the planes and the programs, and returns the addresses of their metrics.
func newWorld(t *testing.T) (w *world, targets map[string]string) {
	t.Helper()
	planes := planetest.NewAll(t, plane.Options{Name: "central"}, plane.Options{Name: "eu"})
	w = &world{t: t, central: planes[0], eu: planes[1], dir: t.TempDir(), servers: pki.New(t, "servers"), clients: pki.New(t, "clients")}
	for _, p := range planes {
		api, err := region.APIFor(p.Config())
		require.NoError(t, err)
		_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{})
		require.NoError(t, err)
		planetest.Apply(t, p, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: alice}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, "+
			"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]}")
	}
	planetest.Apply(t, w.central, "{apiVersion: v1, kind: Namespace, metadata: {name: "+installation+"}}")
	w.write("central.kubeconfig", w.central.Kubeconfig())
	manager := w.manage()
	gateway := w.serve()
	return w, map[string]string{"manager": manager, "gateway": gateway, "cluster": startCluster(t, w.central, w.eu)}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name string, data []byte) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(w.path(name), data, 0o600))
}

// manage runs the manager, and makes the Account of the provider and its regions.
func (w *world) manage() (health string) {
	w.t.Helper()
	w.write("manager.yaml", fmt.Appendf(nil, `{apiVersion: manager.atoll.dev/v1alpha1, kind: ManagerConfiguration, central: {kubeconfigFile: %q}, peers: {probeInterval: 1s},
		fanout: {sweepInterval: 2s}, serviceClusters: {probeInterval: 2s, allowAddresses: [127.0.0.0/8]}, health: {address: "127.0.0.1:0"}}`, w.path("central.kubeconfig")))
	p := process.Start(w.t, "manager", []string{"POD_NAME=a"}, process.Build(w.t, "../../../../cmd/atoll-manager"), "--config="+w.path("manager.yaml"))
	planetest.Apply(w.t, w.central, "{apiVersion: operator.kubecarrier.io/v1alpha1, kind: KubeCarrier, metadata: {name: kubecarrier}, spec: {master: true}}")
	w.rotate()
	planetest.Apply(w.t, w.central, "{apiVersion: master.kubecarrier.io/v1alpha1, kind: Peer, metadata: {name: eu}, spec: {kubeconfigSecret: {name: eu}}}")
	w.await(w.central, peers, "", "eu", "Ready", "status", "phase")
	planetest.Apply(w.t, w.central, "{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: "+provider+"}, spec: {roles: [Provider], "+
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]}}")
	w.await(w.central, accounts, "", provider, "Ready", "status", "phase")
	for name, p := range map[string]*plane.Plane{"eu-1": w.eu, "local-1": w.central} {
		planetest.Apply(w.t, p, fmt.Sprintf("{apiVersion: kubecarrier.io/v1alpha1, kind: RegionClaim, metadata: {name: %s, namespace: %s}, spec: {}}", name, provider))
		w.await(p, regionClaims, provider, name, "Bound", "status", "phase")
	}
	entry, err := p.Entry("The manager runs")
	require.NoError(w.t, err)
	return fmt.Sprint(entry["health"])
}

// rotate writes new credentials of an administrator of the peer eu.
func (w *world) rotate() {
	w.t.Helper()
	kubeconfig, err := w.eu.KubeconfigFor("atoll", "system:masters")
	require.NoError(w.t, err)
	planetest.Apply(w.t, w.central, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: eu, namespace: %s}, stringData: {kubeconfig: %q}}", installation, kubeconfig))
}

// serve runs the gateway until it serves both regions.
func (w *world) serve() (health string) {
	w.t.Helper()
	certificate, key := w.servers.Server(w.t)
	w.write("tls.crt", certificate)
	w.write("tls.key", key)
	w.write("clients.crt", w.clients.PEM())
	w.write("gateway.yaml", fmt.Appendf(nil, `{apiVersion: gateway.atoll.dev/v1alpha1, kind: GatewayConfiguration, serving: {address: "127.0.0.1:0", certificateFile: %[1]s/tls.crt, keyFile: %[1]s/tls.key},
		source: {central: {kubeconfigFile: %[1]s/central.kubeconfig}, cacheDirectory: %[1]s}, authentication: {clientCertificates: {caFile: %[1]s/clients.crt}},
		fanout: {logFile: %[1]s/operations.log}, drain: {delay: 0s}, health: {address: "127.0.0.1:0"}}`, w.dir))
	p := process.Start(w.t, "gateway", nil, process.Build(w.t, "../../../../cmd/atoll-gateway"), "--config="+w.path("gateway.yaml"))
	planetest.Eventually(w.t, soon, "the gateway serves both regions", func(ctx context.Context) error {
		entry, err := p.Entry("The gateway serves")
		if err != nil {
			return err
		}
		w.address, health = fmt.Sprint(entry["address"]), fmt.Sprint(entry["health"])
		if _, text := process.Probe(ctx, health, "/readyz"); strings.Count(text, "[+]region") != 2 {
			return errors.New(text)
		}
		return nil
	})
	return health
}

// at returns clients of alice at the gateway, for a region or for all.
func (w *world) at(place string) dynamic.Interface {
	w.t.Helper()
	certificate, key := w.clients.Client(w.t, "alice")
	return planetest.Dynamic(w.t, &rest.Config{
		Host: "https://" + w.address + "/regions/" + place, TLSClientConfig: rest.TLSClientConfig{CAData: w.servers.PEM(), CertData: certificate, KeyData: key},
	})
}

// await waits until a field of an object in p has a value.
func (w *world) await(p *plane.Plane, gvr schema.GroupVersionResource, namespace, name, want string, fields ...string) {
	w.t.Helper()
	client := planetest.Dynamic(w.t, p.Config()).Resource(gvr).Namespace(namespace)
	planetest.Eventually(w.t, soon, fmt.Sprintf("%s %s has %s", gvr.Resource, name, want), func(ctx context.Context) error {
		object, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, _, err := unstructured.NestedString(object.Object, fields...); err != nil || got != want {
			return fmt.Errorf("%w: it has %q", err, got)
		}
		return nil
	})
}

// gone waits until p has no such object.
func (w *world) gone(p *plane.Plane, gvr schema.GroupVersionResource, name string) {
	w.t.Helper()
	client := planetest.Dynamic(w.t, p.Config()).Resource(gvr)
	planetest.Eventually(w.t, soon, name+" is gone", func(ctx context.Context) error {
		switch _, err := client.Get(ctx, name, metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		default:
			return errors.New("it is there")
		}
	})
}
