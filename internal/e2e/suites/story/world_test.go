// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/pki"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
	"github.com/atoll-dev/atoll/region"
)

const (
	installation   = "kubecarrier-system"
	peerUser       = "atoll"
	gatewayProgram = "../../../../cmd/atoll-gateway"
	managerProgram = "../../../../cmd/atoll-manager"

	// The mounts of the gateways' Pods.
	mounted = "/etc/atoll-gateway"
	cached  = "/var/cache/atoll-gateway"

	// soon is the timeout of each condition. It is much longer than a condition takes, since the machine may be busy.
	soon = 3 * time.Minute
)

// world is an installation: the planes, the files of the mounts, and the programs.
type world struct {
	t       *testing.T
	central *plane.Plane
	peers   []*plane.Plane
	dir     string
	users   []string
	servers *pki.Authority // of the gateways' certificates
	clients *pki.Authority // of the users' certificates
	keys    []string       // of tokens

	gatewayBinary, managerBinary string
	gateways, managers           []*replica
	balancer                     *balancer
}

// newWorld starts the planes and applies the manifests of both programs, with the rights that the programs print.
func newWorld(t *testing.T, users int) *world {
	t.Helper()
	planes := planetest.NewAll(t, plane.Options{Name: "central"}, plane.Options{Name: "ap"}, plane.Options{Name: "eu"}, plane.Options{Name: "us"})
	w := &world{
		t: t, central: planes[0], peers: planes[1:], dir: t.TempDir(), servers: pki.New(t, "servers"), clients: pki.New(t, "clients"),
		gatewayBinary: process.Build(t, gatewayProgram), managerBinary: process.Build(t, managerProgram),
	}
	for i := range users {
		w.users = append(w.users, fmt.Sprintf("user-%d", i))
	}
	w.certify()
	w.write("servers.crt", w.servers.PEM())
	w.write(mounted+"/clients/ca.crt", w.clients.PEM())
	w.keys = []string{newKey(t)}
	w.writeKeys()
	for _, p := range planes {
		api, err := region.APIFor(p.Config())
		require.NoError(t, err)
		_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{})
		require.NoError(t, err)
	}
	w.grantCentral()
	for _, p := range w.peers {
		w.grantPeer(p)
	}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// write replaces a file of a mount at once.
func (w *world) write(name string, data []byte) {
	w.t.Helper()
	path := w.path(name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, os.WriteFile(path+".new", data, 0o600))
	require.NoError(w.t, os.Rename(path+".new", path))
}

// certify writes a new serving certificate of the gateways.
func (w *world) certify() {
	w.t.Helper()
	certificate, key := w.servers.Server(w.t)
	w.write(mounted+"/tls/tls.key", key)
	w.write(mounted+"/tls/tls.crt", certificate)
}

func newKey(t *testing.T) string {
	t.Helper()
	key := make([]byte, 32)
	_, err := rand.Read(key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(key)
}

func (w *world) writeKeys() { w.write(mounted+"/keys/keys", []byte(strings.Join(w.keys, "\n")+"\n")) }

// apply applies manifests of a program as an administrator of p.
func (w *world) apply(p *plane.Plane, files ...string) {
	w.t.Helper()
	args := []string{"apply", "--server-side"}
	for _, file := range files {
		args = append(args, "--filename="+file)
	}
	w.admin(p, "", args...)
}

// admin runs kubectl as an administrator of p.
func (w *world) admin(p *plane.Plane, stdin string, args ...string) string {
	w.t.Helper()
	path := w.path(p.Name() + "-admin/kubeconfig")
	if _, err := os.Stat(path); err != nil {
		w.write(p.Name()+"-admin/kubeconfig", p.Kubeconfig())
	}
	out, err := process.Kubectl(w.t, stdin, append([]string{"--kubeconfig=" + path, "--cache-dir=" + path + ".cache"}, args...)...)
	require.NoError(w.t, err, "kubectl %s: %s", strings.Join(args, " "), out)
	return out
}

// await waits until kubectl, as an administrator of p, prints want.
func (w *world) await(p *plane.Plane, want string, args ...string) {
	w.t.Helper()
	planetest.Eventually(w.t, soon, p.Name()+": kubectl "+strings.Join(args, " "), func(context.Context) error {
		if out := w.admin(p, "", args...); !strings.Contains(out, want) {
			return fmt.Errorf("it prints %q, want %q", out, want)
		}
		return nil
	})
}

// grantCentral applies the manifests in the central plane, and the rights that the configuration of the story needs besides.
func (w *world) grantCentral() {
	w.t.Helper()
	planetest.Apply(w.t, w.central, "{apiVersion: v1, kind: Namespace, metadata: {name: "+installation+"}}")
	for _, program := range []string{gatewayProgram, managerProgram} {
		w.apply(w.central, program+"/deploy/config.yaml", program+"/deploy/deployment.yaml", program+"/deploy/network.yaml")
	}
	w.apply(w.central, gatewayProgram+"/deploy/service.yaml", gatewayProgram+"/deploy/rbac.yaml", managerProgram+"/deploy/plane-rbac.yaml")
	for _, program := range []string{"atoll-gateway", "atoll-manager"} {
		kubeconfig, err := w.central.ServiceAccountKubeconfig(w.t.Context(), installation, program)
		require.NoError(w.t, err)
		w.write(program+".kubeconfig", kubeconfig)
	}
	w.admin(w.central, w.printed("plane"), "apply", "--server-side", "--force-conflicts", "--filename=-")
	w.bind(w.central, "atoll", "ServiceAccount", "atoll-gateway")
	planetest.Apply(w.t, w.central, "{apiVersion: operator.kubecarrier.io/v1alpha1, kind: KubeCarrier, metadata: {name: kubecarrier}, spec: {master: true}}")
}

// grantPeer applies the rights of the managers and of the gateways, which use the same kubeconfig, and those of the users.
func (w *world) grantPeer(p *plane.Plane) {
	w.t.Helper()
	w.apply(p, managerProgram+"/deploy/peer-rbac.yaml")
	args := []string{"peer", "--as-group", "dev"}
	for _, user := range w.users {
		args = append(args, "--as", user)
	}
	w.admin(p, w.printed(args...), "apply", "--server-side", "--filename=-")
	w.bind(p, "atoll-impersonate", "User", peerUser)
	w.bind(p, "atoll", "User", peerUser)
	planetest.Apply(w.t, p, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: dev}, rules: [
		{apiGroups: [""], resources: [configmaps, secrets], verbs: [create, delete, get, list, patch, update, watch]},
		{apiGroups: [catalog.kubecarrier.io], resources: [accounts], verbs: [create, delete, get, list, patch, update, watch]},
		{apiGroups: [kubecarrier.io], resources: [serviceclusters, regionclaims], verbs: [create, delete, get, list, patch, update, watch]}]}`)
	w.bind(p, "dev", "Group", "dev")
}

func (w *world) bind(p *plane.Plane, role, kind, subject string) {
	w.t.Helper()
	who := fmt.Sprintf("{apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}", kind, subject)
	if kind == "ServiceAccount" {
		who = fmt.Sprintf("{kind: ServiceAccount, name: %s, namespace: %s}", subject, installation)
	}
	planetest.Apply(w.t, p, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s-%[2]s},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}, subjects: [%[3]s]}`, role, strings.ToLower(subject), who))
}

// printed returns the roles that the gateway prints.
func (w *world) printed(args ...string) string {
	w.t.Helper()
	return process.Output(w.t, w.gatewayBinary, append([]string{"--config=" + w.gatewayConfig(w.t.TempDir()), "--rights"}, args...)...)
}

// gatewayConfig writes the configuration of the manifests into the folder of a replica. It differs in what only a Pod has:
// paths, ports and the credentials of the ServiceAccount. It also has the write-ahead log of operations on all peers.
func (w *world) gatewayConfig(dir string) string {
	return w.configure(dir, gatewayProgram, "gateway.yaml", map[string]any{
		"serving.address": "127.0.0.1:0", "health.address": "127.0.0.1:0", "audit.file": filepath.Join(dir, "audit.log"), "log.requests": false,
		"source.central.kubeconfigFile": w.path("atoll-gateway.kubeconfig"), "authentication.tokenReview.kubeconfigFile": w.path("atoll-gateway.kubeconfig"),
		"fanout.logFile": filepath.Join(dir, "operations.log"),
		// Shorter than in the manifests, so that a start without the central plane, and a drain, need not wait.
		"source.cacheWait": "1s", "drain.delay": "2s",
	})
}

// managerConfig does the same for a manager. The clusters of the story are at the loopback.
func (w *world) managerConfig(dir string) string {
	return w.configure(dir, managerProgram, "manager.yaml", map[string]any{
		"central.kubeconfigFile": w.path("atoll-manager.kubeconfig"), "health.address": "127.0.0.1:0",
		"serviceClusters.allowAddresses": []any{"127.0.0.0/8"}, "serviceClusters.probeInterval": "2s", "fanout.sweepInterval": "5s",
	})
}

func (w *world) configure(dir, program, file string, values map[string]any) string {
	w.t.Helper()
	return process.Configure(w.t, program, file, dir, strings.NewReplacer(mounted, w.path(mounted), cached, dir), values)
}
