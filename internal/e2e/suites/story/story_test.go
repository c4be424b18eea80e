// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/pki"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
)

const (
	provider = "loodse"
	tenant   = "team"
	users    = 50
)

// regionOf returns the name of a peer's region at the gateways.
func regionOf(p *plane.Plane) string { return p.Name() + "-1." + provider }

// TestStory plays the life of an installation. Each chapter lasts until its event has happened and each user has
// made some more steps. No request may fail, except those to a region that is away.
func TestStory(t *testing.T) {
	steps := int64(ctltest.Count(t, "ATOLL_STEPS", 1)) // of each user in each chapter
	w := newWorld(t, users)
	f := newFigures()
	ap, eu, us := w.peers[0], w.peers[1], w.peers[2]
	w.install()
	w.serve(tenant, eu, "cluster-1")

	f.begin("everything runs")
	l := w.startLoad(f, tenant, regionOf(ap), regionOf(eu), regionOf(us))
	informers := []*informer{w.watch("user-0", tenant), w.watch("user-1", tenant), w.watch("user-2", tenant)}
	l.goesOn(2 * steps)

	f.begin("the gateways and the managers are restarted in turn")
	w.restart(l, steps)

	f.begin("the credentials for the peers are rotated")
	for _, p := range w.peers {
		w.rotate(p)
	}
	l.goesOn(steps)

	f.begin("the central plane is stopped")
	require.NoError(t, w.central.Kill(t.Context()))
	l.goesOn(steps)

	f.begin("a region is killed")
	f.leave(regionOf(ap))
	require.NoError(t, ap.Kill(t.Context()))
	w.sees("[!]region " + regionOf(ap))
	l.goesOn(steps, regionOf(ap))

	f.begin("the region is started again")
	require.NoError(t, ap.Restart(t.Context()))
	w.sees("[+]region " + regionOf(ap))
	f.comeback(regionOf(ap))
	l.goesOn(steps)

	f.begin("certificates, authorities and token keys are rotated")
	w.rotateCertificates(l, steps)
	w.rotateKeys(informers)

	f.begin("the gateways and the managers are restarted in turn, without the central plane")
	w.restart(l, steps)

	for n, i := range informers {
		require.EqualValues(t, 1, i.lists.Load(), "lists of informer %d", n)
	}
	f.begin("the central plane is started again")
	require.NoError(t, w.central.Restart(t.Context()))
	w.misses("[!]")
	w.serve(tenant, us, "cluster-2")
	l.goesOn(steps)

	f.begin("a region is drained and removed")
	l.stop(regionOf(ap))
	l.left(regionOf(ap))
	configs := map[string]*rest.Config{regionOf(ap): ap.Config(), regionOf(eu): eu.Config(), regionOf(us): us.Config()}
	w.remove(ap)
	l.goesOn(steps)

	l.stop(regionOf(ap), regionOf(eu), regionOf(us))
	require.Empty(t, f.problems())
	all := l.check(tenant, configs)
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasSuffix(name, "@"+regionOf(ap)) })
	relists := int64(0)
	for _, i := range informers {
		i.has(all)
		relists += i.lists.Load() - 1
	}
	said := fmt.Sprintf("%d users, %d informers. %d requests of users, of which %d failed in a region that was not away. %d new lists of informers.\n\n%s",
		users, len(informers), f.requests(), f.count(), relists, f.table())
	t.Log("\n" + said)
	docpage.Section(t, "story.md", "story", said)
}

// install starts the programs and registers the peers, the provider and its regions.
func (w *world) install() {
	w.t.Helper()
	for _, name := range []string{"a", "b"} {
		w.managers = append(w.managers, w.startReplica("manager-"+name))
		w.gateways = append(w.gateways, w.startReplica("gateway-"+name))
	}
	for _, p := range w.peers {
		w.writeSecret(p)
		planetest.Apply(w.t, w.central, fmt.Sprintf("{apiVersion: master.kubecarrier.io/v1alpha1, kind: Peer, metadata: {name: %s}, spec: {kubeconfigSecret: {name: %[1]s}}}", p.Name()))
	}
	for _, p := range w.peers {
		w.await(w.central, "is Ready", "get", "peer", p.Name(), "-o", "jsonpath=is {.status.phase}") // "is" keeps NotReady from matching
		w.await(p, "Active", "get", "peersets.fanout.atoll.dev", "-o", "yaml")
	}
	planetest.Apply(w.t, w.central, "{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: "+provider+"}, spec: {roles: [Provider], "+
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: admin}]}}")
	w.await(w.central, "Ready", "get", "account", provider, "-o", "jsonpath={.status.phase}")
	for _, p := range w.peers {
		planetest.Apply(w.t, p, fmt.Sprintf("{apiVersion: kubecarrier.io/v1alpha1, kind: RegionClaim, metadata: {name: %s-1, namespace: %s}, spec: {}}", p.Name(), provider))
		w.await(p, "Bound", "get", "--namespace="+provider, "regionclaim", p.Name()+"-1", "-o", "jsonpath={.status.phase}")
	}
	w.balancer = newBalancer(w.t, w.gateways...)
	w.credentials()
	for _, p := range w.peers {
		w.sees("[+]region " + regionOf(p))
	}
}

// writeSecret writes a kubeconfig with a new client certificate, and returns the certificate in base64.
func (w *world) writeSecret(p *plane.Plane) string {
	w.t.Helper()
	kubeconfig, err := p.KubeconfigFor(peerUser)
	require.NoError(w.t, err)
	planetest.Apply(w.t, w.central, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, stringData: {kubeconfig: %q}}", p.Name(), installation, kubeconfig))
	parsed, err := clientcmd.Load(kubeconfig)
	require.NoError(w.t, err)
	return base64.StdEncoding.EncodeToString(parsed.AuthInfos[parsed.Contexts[parsed.CurrentContext].AuthInfo].ClientCertificateData)
}

// rotate replaces the credentials for a peer, and waits until the gateways keep the new ones.
func (w *world) rotate(p *plane.Plane) {
	w.t.Helper()
	certificate := w.writeSecret(p)
	for _, r := range w.gateways {
		planetest.Eventually(w.t, soon, r.name+" uses the new credentials", func(context.Context) error {
			kept, err := os.ReadFile(filepath.Join(r.dir, "peers.json"))
			if err == nil && !strings.Contains(string(kept), certificate) {
				err = errors.New("the file of kept peers has other ones")
			}
			return err
		})
	}
}

// sees waits until the readiness of each gateway contains a text.
func (w *world) sees(text string) {
	w.t.Helper()
	w.readiness(text, true)
}

// misses waits until the readiness of no gateway contains a text.
func (w *world) misses(text string) {
	w.t.Helper()
	w.readiness(text, false)
}

func (w *world) readiness(text string, there bool) {
	w.t.Helper()
	for _, r := range w.gateways {
		planetest.Eventually(w.t, soon, fmt.Sprintf("the readiness of %s contains %q: %t", r.name, text, there), func(ctx context.Context) error {
			_, health := r.at()
			if code, answer := process.Probe(ctx, health, "/readyz"); code == 0 || strings.Contains(answer, text) != there {
				return errors.New(answer)
			}
			return nil
		})
	}
}

// serve makes the tenant and a ServiceCluster at a gateway, with kubectl as a user, and waits until it is Ready in its region.
func (w *world) serve(account string, p *plane.Plane, name string) {
	w.t.Helper()
	w.kubectl(p, `{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: `+account+`}, spec: {roles: [Tenant], subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: dev}]}}`,
		"apply", "--filename=-")
	for _, each := range w.peers {
		w.awaitAs(each, "Ready", "get", "account", account, "-o", "jsonpath={.status.phase}")
	}
	w.kubectl(p, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, stringData: {kubeconfig: %q}}", name, account, p.Kubeconfig()), "apply", "--filename=-")
	w.kubectl(p, fmt.Sprintf("{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {name: %[1]s, namespace: %[2]s}, spec: {kubeconfigSecret: {name: %[1]s}}}", name, account), "apply", "--filename=-")
	w.awaitAs(p, "is Ready with v1.", "get", "--namespace="+account, "servicecluster", name, "-o", "jsonpath=is {.status.phase} with {.status.kubernetesVersion.gitVersion}")
}

// kubectl runs kubectl as user-0, at the balancer, in the region of p.
func (w *world) kubectl(p *plane.Plane, stdin string, args ...string) string {
	w.t.Helper()
	out, err := w.tryKubectl(p, stdin, args...)
	require.NoError(w.t, err, "kubectl %s: %s", strings.Join(args, " "), out)
	return out
}

func (w *world) tryKubectl(p *plane.Plane, stdin string, args ...string) (string, error) {
	w.t.Helper()
	file := w.path("users/user-0.pem")
	return process.Kubectl(w.t, stdin, append([]string{
		"--server=" + w.balancer.address() + "/regions/" + regionOf(p), "--certificate-authority=" + w.path("servers.crt"), "--kubeconfig=/dev/null",
		"--client-certificate=" + file, "--client-key=" + file, "--cache-dir=" + w.path("kubectl"),
	}, args...)...)
}

func (w *world) awaitAs(p *plane.Plane, want string, args ...string) {
	w.t.Helper()
	planetest.Eventually(w.t, soon, "kubectl "+strings.Join(args, " "), func(context.Context) error {
		if out, err := w.tryKubectl(p, "", args...); err != nil || !strings.Contains(out, want) {
			return fmt.Errorf("%w: %q instead of %q", err, out, want)
		}
		return nil
	})
}

// restart restarts one replica after the other.
func (w *world) restart(l *load, steps int64) {
	w.t.Helper()
	for _, r := range w.gateways {
		r.restart(r.ready)
		l.goesOn(steps)
	}
	for _, r := range w.managers {
		r.restart(r.live)
		l.goesOn(steps)
	}
}

// rotateCertificates gives the gateways a new certificate, and the users another authority with new certificates.
func (w *world) rotateCertificates(l *load, steps int64) {
	w.t.Helper()
	const serving, authorities = "serving certificate", "authorities of client certificates"
	w.certify()
	w.read(serving, 1)
	old := w.clients
	w.clients = pki.New(w.t, "clients-2")
	w.write(mounted+"/clients/ca.crt", append(old.PEM(), w.clients.PEM()...))
	w.read(authorities, 1)
	certificate, err := os.ReadFile(w.path("users/user-0.pem"))
	require.NoError(w.t, err)
	l.renew()
	w.write(mounted+"/clients/ca.crt", w.clients.PEM())
	w.read(authorities, 2)
	l.goesOn(steps)
	w.write("old.pem", certificate)
	out, err := w.tryKubectl(w.peers[1], "", "get", "configmaps", "--namespace="+tenant, "--client-certificate="+w.path("old.pem"), "--client-key="+w.path("old.pem"))
	require.Error(w.t, err, "a certificate of the old authority")
	require.Contains(w.t, out, "You must be logged in to the server")
}

// rotateKeys replaces the key of tokens in the three steps that the page for operators names.
func (w *world) rotateKeys(informers []*informer) {
	w.t.Helper()
	const keys = "keys of tokens"
	old, next := w.keys[0], newKey(w.t)
	for n, present := range [][]string{{old, next}, {next, old}} {
		w.keys = present
		w.writeKeys()
		w.read(keys, n+1)
	}
	for _, i := range informers {
		i.advances(i.cache.LastSyncResourceVersion())
	}
	w.keys = []string{next}
	w.writeKeys()
	w.read(keys, 3)
}

// read waits until each gateway has read the files n times.
func (w *world) read(files string, n int) {
	w.t.Helper()
	for _, r := range w.gateways {
		r.reads(files, n)
	}
}

// remove takes a peer out of the ring and of the installation: its region first, then its membership, then its Peer.
func (w *world) remove(p *plane.Plane) {
	w.t.Helper()
	w.admin(p, "", "delete", "--namespace="+provider, "regionclaim", p.Name()+"-1")
	w.misses(regionOf(p))
	args := []string{"peer", "leave", p.Name(), "--wal", w.path("administrator.db"), "--create-wal", "--timeout", "5m"}
	for _, each := range w.peers {
		args = append(args, "--kubeconfig", each.Name()+"="+w.path(each.Name()+"-admin/kubeconfig"))
	}
	args = append(args, "--kubeconfig", "local="+w.path(w.central.Name()+"-admin/kubeconfig"))
	w.t.Log(process.Output(w.t, process.Build(w.t, "../../../../cmd/atollctl"), args...))
	w.admin(w.central, "", "delete", "peer", p.Name(), "--timeout=2m")
	out, err := w.tryKubectl(p, "", "get", "configmaps", "--namespace="+tenant)
	require.Error(w.t, err)
	require.Contains(w.t, out, "this region is not served here")
}
