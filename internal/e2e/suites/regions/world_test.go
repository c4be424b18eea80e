// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
)

const (
	user         = "atoll" // the program's user name in all planes
	installation = "kubecarrier-system"

	// soon is the timeout of each condition. It is much longer than a condition takes, since the
	// machine may be busy.
	soon = 2 * time.Minute
)

// world is a central plane and three peers.
type world struct {
	planes                  []*plane.Plane // central first
	central                 *plane.Plane
	euWest, usEast, apSouth *plane.Plane
	clients                 map[string]*client // of administrators, by plane
	kubectl                 map[string]kubectl // by plane
}

// newWorld starts planes for one test, with the CRDs and the rights that the program needs. No peer
// is registered and no program runs yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	var options []plane.Options
	for _, name := range []string{"central", "eu-west", "us-east", "ap-south"} {
		options = append(options, plane.Options{Name: name})
	}
	planes := planetest.NewAll(t, options...)
	w := &world{
		planes: planes, central: planes[0], euWest: planes[1], usEast: planes[2], apSouth: planes[3],
		clients: map[string]*client{}, kubectl: map[string]kubectl{},
	}
	for _, p := range planes {
		api, err := region.APIFor(p.Config())
		require.NoError(t, err)
		_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{})
		require.NoError(t, err)
		w.clients[p.Name()] = &client{name: p.Name(), Interface: api.Dynamic()}
		w.kubectl[p.Name()] = newKubectl(t, p)
		planetest.Apply(t, p, grants(t, "", rights.Peers(), rights.Coordinate(), rights.Accounts(), rights.Claims()))
	}
	planetest.Apply(t, w.central, "{apiVersion: v1, kind: Namespace, metadata: {name: "+installation+"}}")
	grantCentral(t, w.central)
	return w
}

// grantCentral grants the program the rights for its central plane.
func grantCentral(t *testing.T, p *plane.Plane) {
	t.Helper()
	planetest.Apply(t, p, grants(t, "", rights.PeersCentral(), rights.CoordinateCentral(), rights.AccountsCentral(), rights.Publish()))
	shards := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "delete", "get", "list", "patch", "watch"},
	}}}
	shards.Name = "atoll-shards"
	kubeconfigs := &rbacv1.ClusterRole{Rules: rights.Kubeconfigs(installation).Rules}
	kubeconfigs.Name = "atoll-kubeconfigs"
	planetest.Apply(t, p, grants(t, installation, rights.ClaimsCentral(), shards, kubeconfigs))
}

// grants returns manifests that grant the roles to the program's user: in the namespace, or
// cluster-wide if namespace is empty.
func grants(t *testing.T, namespace string, roles ...*rbacv1.ClusterRole) string {
	t.Helper()
	var manifests bytes.Buffer
	for _, role := range roles {
		role.APIVersion, role.Kind = rbacv1.SchemeGroupVersion.String(), "ClusterRole"
		manifest, err := yaml.Marshal(role)
		require.NoError(t, err)
		kind, in := "ClusterRoleBinding", ""
		if namespace != "" {
			kind, in = "RoleBinding", ", namespace: "+namespace
		}
		fmt.Fprintf(&manifests, "%s\n---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %[3]s%[4]s}, "+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[3]s}, "+
			"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[5]s}]}\n---\n", manifest, kind, role.Name, in, user)
	}
	return manifests.String()
}

// kubeconfig returns a new kubeconfig of the program for a plane.
func kubeconfig(t *testing.T, p *plane.Plane) []byte {
	t.Helper()
	kubeconfig, err := p.KubeconfigFor(user)
	require.NoError(t, err)
	return kubeconfig
}

// secret returns the manifest of the Secret with the kubeconfig of a Peer.
func secret(peer string, kubeconfig []byte) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s-kubeconfig, namespace: %s}, stringData: {kubeconfig: %q}}",
		peer, installation, kubeconfig)
}

// store writes a kubeconfig into the Secret of a Peer.
func (w *world) store(t *testing.T, peer string, kubeconfig []byte) {
	t.Helper()
	planetest.Apply(t, w.central, secret(peer, kubeconfig))
}

// register creates a Peer for a plane.
func (w *world) register(t *testing.T, name string, p *plane.Plane) {
	t.Helper()
	w.store(t, name, kubeconfig(t, p))
	planetest.Apply(t, w.central, fmt.Sprintf(
		"{apiVersion: master.kubecarrier.io/v1alpha1, kind: Peer, metadata: {name: %s}, spec: {kubeconfigSecret: {name: %[1]s-kubeconfig}}}", name))
}

// start runs the program in this process until the test ends or stop is called.
func (w *world) start(t *testing.T, group, identity string, observer *region.Observer) (p *program, stop func()) {
	t.Helper()
	config, err := plane.ConfigOf(kubeconfig(t, w.central))
	require.NoError(t, err)
	p, err = newProgram(config, group, identity, observer)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return p, stop
}

// populate registers the peers, makes the central plane a master, makes all planes a ring, and adds
// the provider loodse. The program must be running.
func (w *world) populate(t *testing.T, p *program) {
	t.Helper()
	for _, peer := range w.planes[1:] {
		w.register(t, peer.Name(), peer)
	}
	planetest.Apply(t, w.central, "{apiVersion: operator.kubecarrier.io/v1alpha1, kind: KubeCarrier, metadata: {name: kubecarrier}, spec: {master: true}}")
	w.awaitPeers(t, "local", "eu-west", "us-east", "ap-south")
	w.form(t, p)
	planetest.Apply(t, w.central, provider("loodse"))
	w.awaitAccount(t, "loodse")
}

// form makes all peers a ring, which a person does once.
func (w *world) form(t *testing.T, p *program) {
	t.Helper()
	planetest.Eventually(t, soon, "the peers are a ring", func(ctx context.Context) error {
		running := p.loops.Load()
		if running == nil {
			return errors.New("the loops do not run")
		}
		if n := running.ring.Snapshot().Len(); n != len(w.planes) {
			return fmt.Errorf("the program knows %d peers", n)
		}
		return running.coordinator.InitPeers(ctx)
	})
}

func provider(name string) string {
	return "{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: " + name +
		"}, spec: {roles: [Provider], subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]}}"
}

func regionClaim(provider, name string) string {
	return fmt.Sprintf("{apiVersion: kubecarrier.io/v1alpha1, kind: RegionClaim, metadata: {name: %s, namespace: %s}, spec: {}}", name, provider)
}

func serviceCluster(provider, name string) string {
	return fmt.Sprintf("{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {name: %s, namespace: %s}, spec: {kubeconfigSecret: {name: %[1]s}}}", name, provider)
}

// of returns the administrator's client of a plane.
func (w *world) of(p *plane.Plane) *client { return w.clients[p.Name()] }

// awaitPeers waits until all these Peers are Ready.
func (w *world) awaitPeers(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		w.of(w.central).await(t, "Peer "+name+" is Ready", peers, "", name, has("Ready", "phase"))
	}
}

// awaitAccount waits until an Account is Ready in the central plane.
func (w *world) awaitAccount(t *testing.T, name string) {
	t.Helper()
	w.of(w.central).await(t, "Account "+name+" is Ready", accounts, "", name, has("Ready", "phase"))
}

// awaitClaim waits for the phase of a RegionClaim of loodse in a plane.
func (w *world) awaitClaim(t *testing.T, p *plane.Plane, name, phase string) {
	t.Helper()
	w.of(p).await(t, fmt.Sprintf("RegionClaim %s of loodse in %s is %s", name, p.Name(), phase), regionClaims, "loodse", name, has(phase, "phase"))
}
