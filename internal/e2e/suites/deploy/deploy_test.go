// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	accounts "github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
)

const (
	installation = "kubecarrier-system"
	account      = "atoll-manager"
	podUser      = "system:serviceaccount:" + installation + ":" + account
	peerUser     = "atoll"

	// soon is the timeout of each condition. It is much longer than a condition takes, since the
	// machine may be busy.
	soon = 2 * time.Minute
)

// TestDeploy applies the manifests with kubectl, runs the program in two replicas with the Pods'
// ServiceAccount, and creates, edits and deletes objects. It requires the effects of the loops, and
// that neither the central plane nor the peer eu rejects a request for lack of a right. It also
// requires that every granted right is used in one of these two planes, except those in
// unusedRights and heldOnly.
func TestDeploy(t *testing.T) {
	planeOptions, planeLog := audited(t, "plane")
	peerOptions, peerLog := audited(t, "eu")
	planes := planetest.NewAll(t, planeOptions, peerOptions, plane.Options{Name: "us"})
	central, eu, us := planes[0], planes[1], planes[2]
	for _, p := range planes {
		api, err := region.APIFor(p.Config())
		require.NoError(t, err)
		_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{})
		require.NoError(t, err)
	}
	planetest.Apply(t, central, "{apiVersion: v1, kind: Namespace, metadata: {name: "+installation+"}}")

	apply(t, central, "plane-rbac.yaml", "config.yaml", "deployment.yaml", "network.yaml")
	apply(t, eu, "peer-rbac.yaml")
	apply(t, us, "peer-rbac.yaml")
	require.Contains(t, kubectl(t, central, "get", "--namespace="+installation, "deployment", account, "-o", "jsonpath={.spec.replicas}"), "2")

	program := process.Build(t, folder)
	kubeconfig, err := central.ServiceAccountKubeconfig(t.Context(), installation, account)
	require.NoError(t, err)
	path := planetest.WriteKubeconfig(t, "pods", kubeconfig)
	a, b := start(t, program, path, "a"), start(t, program, path, "b")

	planetest.Apply(t, central, "{apiVersion: operator.kubecarrier.io/v1alpha1, kind: KubeCarrier, metadata: {name: kubecarrier}, spec: {master: true}}")
	register(t, central, eu)
	play(t, central, eu, "first")
	planetest.Eventually(t, soon, "a is ready", a.ready)
	planetest.Eventually(t, soon, "b is ready", b.ready)
	b.Stop()                 // a takes over: b gives up its Lease when it stops
	register(t, central, us) // the peer joins the ring
	play(t, central, eu, "second")
	a.Stop()

	plane, peer := roles(true), roles(false)
	there, refused := used(t, planeLog, podUser)
	require.Empty(t, refused, "in the plane")
	inPeers, refused := used(t, peerLog, peerUser)
	require.Empty(t, refused, "in a peer")
	requireGranted(t, "the plane", there, plane, peer)
	requireGranted(t, "a peer", inPeers, peer)
	requireUsed(t, plane, there)
	requireUsed(t, peer, there, inPeers) // the plane is a peer too
	for _, r := range []*replica{a, b} {
		require.NotContains(t, strings.ToLower(r.Log.String()), "forbidden")
	}
}

// apply applies manifests, first as a server-side dry run, and requires that all objects are
// accepted.
func apply(t *testing.T, p *plane.Plane, files ...string) {
	t.Helper()
	args := []string{"apply", "--server-side"}
	for _, file := range files {
		args = append(args, "--filename="+filepath.Join(folder, "deploy", file))
	}
	for _, dry := range []bool{true, false} {
		out := kubectl(t, p, append(args, fmt.Sprintf("--dry-run=%s", map[bool]string{true: "server", false: "none"}[dry]))...)
		for line := range strings.Lines(out) {
			require.Contains(t, line, "serverside-applied", "each object is accepted")
			require.Equal(t, dry, strings.Contains(line, "(server dry run)"))
		}
	}
}

// roles returns the roles of the central plane if central is set, otherwise those of each peer. The
// central plane is a peer, too, so it also has the roles of a peer.
func roles(central bool) (all []*rbacv1.ClusterRole) {
	for _, loop := range rights.LoopNames() {
		if loop == "catalog" && !central {
			continue // the catalogue is published only in the central plane
		}
		cluster, namespaced, _ := rights.Loop(loop, rights.Place{Central: central, Namespace: installation})
		all = append(all, cluster...)
		for _, r := range namespaced {
			role := &rbacv1.ClusterRole{Rules: r.Rules}
			role.Name = r.Name
			all = append(all, role)
		}
	}
	return all
}

// requireGranted requires that a role grants each used right.
func requireGranted(t *testing.T, where string, used map[string]bool, roles ...[]*rbacv1.ClusterRole) {
	t.Helper()
	require.NotEmpty(t, used)
	have := granted(slices.Concat(roles...)...)
	for name := range used {
		require.Contains(t, have, name, "%s was used in %s, and no role grants it", name, where)
	}
}

// unusedRights lists the granted rights that this test does not use, with the reason for each.
var unusedRights = map[string]string{
	"delete operations.fanout.atoll.dev":    "they are forgotten after a day",
	"get operations.fanout.atoll.dev":       "to see what became of one whose answer was lost",
	"patch events":                          "repetitions are counted once a minute; events.TestRightsSufficeAndAreUsed",
	"patch accounts.catalog.kubecarrier.io": "the finalizer in a plane that is no peer of the ring",
}

// requireUsed requires that each granted right, except those in unusedRights and heldOnly, is in
// one of the sets used.
func requireUsed(t *testing.T, roles []*rbacv1.ClusterRole, used ...map[string]bool) {
	t.Helper()
	held := granted(heldOnly())
	have := granted(roles...)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if held[name] == nil && unusedRights[name] == "" && !slices.ContainsFunc(used, func(u map[string]bool) bool { return u[name] }) {
			t.Errorf("%s is granted by %s, but was never used", name, strings.Join(have[name], " and "))
		}
	}
}

// heldOnly returns the rights that the program does not use itself. The program has them because an
// API server lets a client grant only its own rights, and the program grants these in the Roles of
// Accounts.
func heldOnly() *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{}
	for _, rules := range accounts.DefaultRights() {
		role.Rules = append(role.Rules, rules...)
	}
	return role
}

// register creates a Peer for p. It waits until the Peer is Ready and p has a PeerSet.
func register(t *testing.T, central, p *plane.Plane) {
	t.Helper()
	kubeconfig, err := p.KubeconfigFor(peerUser)
	require.NoError(t, err)
	planetest.Apply(t, central, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, stringData: {kubeconfig: %q}}", p.Name(), installation, kubeconfig))
	planetest.Apply(t, central, fmt.Sprintf("{apiVersion: master.kubecarrier.io/v1alpha1, kind: Peer, metadata: {name: %s}, spec: {kubeconfigSecret: {name: %[1]s}}}", p.Name()))
	await(t, central, "is Ready", "get", "peer", p.Name(), "-o", "jsonpath=is {.status.phase}") // "is" keeps NotReady from matching
	await(t, p, "peerset.fanout", "get", "peersets.fanout.atoll.dev", "-o", "name")
}

// play creates objects, edits the objects that the loops derive from them, and deletes the objects
// that it created. Each call needs new names for Accounts: without kube-controller-manager the
// namespaces of deleted Accounts stay Terminating.
func play(t *testing.T, central, eu *plane.Plane, time string) {
	t.Helper()
	provider, tenant := "provider-"+time, "tenant-"+time
	in := func(namespace string) string { return "--namespace=" + namespace }
	account := func(name, role string) string {
		return fmt.Sprintf("{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: %s}, spec: {roles: [%s], "+
			"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]}}", name, role)
	}
	planetest.Apply(t, central, account(provider, "Provider"))
	planetest.Apply(t, central, account(tenant, "Tenant"))
	for _, name := range []string{provider, tenant} {
		await(t, central, "Ready", "get", "account", name, "-o", "jsonpath={.status.phase}")
	}
	const claimed = "{apiVersion: kubecarrier.io/v1alpha1, kind: RegionClaim, metadata: {name: eu-west-1, namespace: %s}, spec: {}}"
	planetest.Apply(t, eu, fmt.Sprintf(claimed, provider))
	await(t, eu, "Bound", "get", in(provider), "regionclaim", "eu-west-1", "-o", "jsonpath={.status.phase}")
	await(t, central, "eu-west-1."+provider, "get", in(tenant), "regions.catalog.kubecarrier.io", "-o", "name")

	// When a region's claim is deleted, the region goes to a claim in another peer.
	planetest.Apply(t, central, fmt.Sprintf(claimed, provider))
	await(t, central, "Conflict", "get", in(provider), "regionclaim", "eu-west-1", "-o", "jsonpath={.status.phase}")
	kubectl(t, eu, "delete", in(provider), "regionclaim", "eu-west-1")
	await(t, central, "Bound", "get", in(provider), "regionclaim", "eu-west-1", "-o", "jsonpath={.status.phase}")

	// The loops revert each edit and each deletion by a person, also if the person repeats it.
	const entry = "eu-west-1."
	kubectl(t, central, "patch", in(tenant), "regions.catalog.kubecarrier.io", entry+provider, "--type=merge", `--patch={"spec":{"provider":{"name":"mallory"}}}`)
	await(t, central, provider, "get", in(tenant), "regions.catalog.kubecarrier.io", entry+provider, "-o", "jsonpath={.spec.provider.name}")
	for _, p := range []*plane.Plane{central, eu} {
		kubectl(t, p, "delete", in(tenant), "role,rolebinding", "--all")
		await(t, p, "kubecarrier-tenant", "get", in(tenant), "role,rolebinding", "-o", "name")
		for range 3 {
			kubectl(t, p, "patch", in(tenant), "role", "kubecarrier-tenant", "--type=json", `--patch=[{"op":"remove","path":"/rules/0"}]`)
			await(t, p, "regions", "get", in(tenant), "role", "kubecarrier-tenant", "-o", "jsonpath={.rules[*].resources}")
			kubectl(t, p, "patch", in(tenant), "rolebinding", "kubecarrier-tenant", "--type=json", `--patch=[{"op":"replace","path":"/subjects/0/name","value":"mallory"}]`)
			await(t, p, "alice", "get", in(tenant), "rolebinding", "kubecarrier-tenant", "-o", "jsonpath={.subjects[*].name}")
		}
	}
	// A change of an Account's role removes the objects of the previous role.
	planetest.Apply(t, central, account(tenant, "Provider"))
	await(t, eu, "kubecarrier-provider", "get", in(tenant), "role", "-o", "name")
	gone(t, central, "get", in(tenant), "regions.catalog.kubecarrier.io", "-o", "name")

	// A cluster becomes Ready. Here the central plane stands for it.
	cluster := fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: us-east-1, namespace: %s}, stringData: {kubeconfig: %q}}", provider, central.Kubeconfig())
	planetest.Apply(t, eu, cluster)
	planetest.Apply(t, eu, fmt.Sprintf("{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {name: us-east-1, namespace: %s}, spec: {kubeconfigSecret: {name: us-east-1}}}", provider))
	await(t, eu, "us-east-1", "get", in(provider), "regionclaim", "-o", "name")
	await(t, eu, "is Ready with v1.", "get", in(provider), "servicecluster", "us-east-1", "-o", "jsonpath=is {.status.phase} with {.status.kubernetesVersion.gitVersion}")
	await(t, central, "Reserved", "get", in(provider), "servicecluster", "us-east-1", "-o", "jsonpath={.spec.fanout.stage}")
	kubectl(t, eu, "delete", in(provider), "servicecluster", "us-east-1", "--timeout=2m")
	gone(t, central, "get", in(provider), "servicecluster", "us-east-1", "--ignore-not-found", "-o", "name")
	gone(t, eu, "get", in(provider), "regionclaim", "us-east-1", "--ignore-not-found", "-o", "name")
	kubectl(t, central, "delete", in(provider), "regionclaim", "--all")
	kubectl(t, central, "delete", "account", provider, tenant, "--timeout=2m")
	gone(t, eu, "get", "accounts.catalog.kubecarrier.io", "-o", "name")
}

// await waits until the output of kubectl contains want.
func await(t *testing.T, p *plane.Plane, want string, args ...string) {
	t.Helper()
	planetest.Eventually(t, soon, "kubectl "+strings.Join(args, " "), func(context.Context) error {
		if out := kubectl(t, p, args...); !strings.Contains(out, want) {
			return fmt.Errorf("it prints %q, want %q", out, want)
		}
		return nil
	})
}

// gone waits until kubectl prints no object.
func gone(t *testing.T, p *plane.Plane, args ...string) {
	t.Helper()
	planetest.Eventually(t, soon, "kubectl "+strings.Join(args, " "), func(context.Context) error {
		if out := kubectl(t, p, args...); strings.TrimSpace(out) != "" && !strings.Contains(out, "No resources found") {
			return errors.New(out)
		}
		return nil
	})
}
