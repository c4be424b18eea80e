// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/wal"
)

var (
	serviceClusters = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}
	accounts        = schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
)

// wrongClusters makes the guest a ring of its own, whose peer has the name of the core peer b. It
// then runs atollctl with wrong kubeconfigs: the kubeconfig of b leads to the guest, two
// kubeconfigs are swapped, or two kubeconfigs lead to one plane. It requires that the core peers a
// and c hold the same objects as before these runs, and that the guest holds none.
func (r *ring) wrongClusters() {
	t := r.t
	a, b, c := r.core[0], r.core[1], r.core[2]
	r.ShellTo("foreign", map[string]*plane.Plane{b.Name(): r.guest}).Succeed(t, "peer", "init")
	r.core3().Succeed(t, "servicecluster", "add", "guarded", "-n", r.acme, "--target", b.Name(), "-f", r.cluster("guarded"))
	before := r.held(a, c)

	misled := map[string]*plane.Plane{a.Name(): a, b.Name(): r.guest, c.Name(): c}
	belongs := "the cluster behind peer " + b.Name() + " belongs to ring "
	for _, run := range []struct {
		log   string
		leads map[string]*plane.Plane
		args  []string
		want  []string
	}{
		{"misled", misled, []string{"peers"}, []string{"WrongCluster", belongs}},
		{"misled", misled, []string{"audit"}, []string{belongs, "Identity"}},
		{"misled", misled, []string{"audit", "--repair"}, []string{belongs, "nothing was repaired"}},
		{"misled", misled, []string{"servicecluster", "add", "guarded", "-n", r.acme, "--target", a.Name(), "-f", r.cluster("guarded")}, []string{belongs}},
		{"misled", misled, []string{"peer", "join", b.Name()}, []string{belongs}},
		{"swapped", map[string]*plane.Plane{a.Name(): b, b.Name(): a, c.Name(): c}, []string{"peers"}, []string{"WrongCluster", "calls itself " + a.Name(), "calls itself " + b.Name()}},
		{"swapped", map[string]*plane.Plane{a.Name(): b, b.Name(): a, c.Name(): c}, []string{"audit", "--repair"}, []string{"nothing was repaired"}},
		{"twice", map[string]*plane.Plane{a.Name(): a, b.Name(): a, c.Name(): c}, []string{"peers"}, []string{"WrongCluster", "calls itself " + a.Name()}},
		{"alone", map[string]*plane.Plane{a.Name(): a, b.Name(): r.guest}, []string{"peers"}, []string{"none is believed"}},
	} {
		result := r.ShellTo(run.log, run.leads).End(t, run.args...)
		require.Equal(t, ctltest.Input, result.Code, "%s", result)
		for _, want := range run.want {
			require.Contains(t, result.Output, want, "%s", result)
		}
	}

	require.Equal(t, before, r.held(a, c), "what the ring holds")
	require.Empty(t, r.held(r.guest), "what another ring holds")
	require.NotContains(t, r.core3().Audit(t), "Violation")
	r.core3().Succeed(t, "peers")
	r.core3().Succeed(t, "servicecluster", "remove", "guarded", "-n", r.acme)
	t.Run("logs", r.defaultLogs)
	// Later the guest joins the ring of the test by its own name, so the guest's PeerSet must be
	// deleted.
	require.NoError(t, planetest.Dynamic(t, r.guest.Config()).Resource(peerSets).Delete(t.Context(), "default", metav1.DeleteOptions{}))
}

// defaultLogs leaves an operation of the test's ring open in the default log of the first release,
// which all rings shared. A command in the guest's ring refuses this log, although the guest's ring
// has a peer of the same name. A command in the test's ring makes the log the log of its ring.
// After that, a command in the guest's ring finds no log.
func (r *ring) defaultLogs(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	common := filepath.Join(home, "atoll", "operations.db")
	b := r.core[1]
	here := r.core3().With("--wal=")
	elsewhere := r.ShellTo("foreign", map[string]*plane.Plane{b.Name(): r.guest}).With("--wal=")
	old := r.By(ctltest.First(t)).Shell("first", r.core...).With("--wal", common)

	name := ""
	for n := 0; name == ""; n++ {
		require.Less(t, n, 50, "each process ended its operation before it was killed")
		next := fmt.Sprintf("logged-%d", n)
		_, err := old.With("-v").RunUntil(t.Context(), "put ServiceCluster", "servicecluster", "add", next, "-n", r.acme, "--target", b.Name(), "-f", r.cluster(next))
		require.NoError(t, err)
		if isOpen(t, common) {
			name = next
			continue
		}
		r.core3().Succeed(t, "servicecluster", "remove", next, "-n", r.acme)
	}

	refused := elsewhere.End(t, "wal", "recover")
	require.Equal(t, ctltest.Input, refused.Code, "%s", refused)
	require.Contains(t, refused.Output, "which all rings used before, is not of this ring", "%s", refused)
	require.Contains(t, refused.Output, "add ServiceCluster "+r.acme+"/"+name+", is of the first release", "%s", refused)
	require.Empty(t, r.held(r.guest))

	taken := here.Recover(t)
	require.Equal(t, ctltest.Done, taken.Code, "%s", taken)
	require.Contains(t, taken.Output, " is now "+filepath.Join(home, "atoll", "rings"), "%s", taken)
	require.NoFileExists(t, common)
	here.Succeed(t, "servicecluster", "remove", name, "-n", r.acme, "--ignore-not-found")
	none := elsewhere.End(t, "wal", "recover")
	require.Equal(t, ctltest.Done, none.Code, "%s", none)
	require.Contains(t, none.Output, "there is no log", "%s", none)
	require.NotContains(t, r.core3().Audit(t), "Violation")
}

// isOpen reports whether the log has an open operation.
func isOpen(t *testing.T, path string) bool {
	t.Helper()
	log, err := wal.Open(path, wal.Options{Existing: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	for _, err := range log.Open(t.Context()) {
		require.NoError(t, err)
		return true
	}
	return false
}

// held lists the ServiceClusters of the test's Account and all Accounts in planes, with UIDs and
// resource versions.
func (r *ring) held(planes ...*plane.Plane) []string {
	r.t.Helper()
	var all []string
	for _, p := range planes {
		for resource, namespace := range map[schema.GroupVersionResource]string{serviceClusters: r.acme, accounts: ""} {
			objects, err := r.Objects(r.t.Context(), p.Name(), resource, namespace)
			require.NoError(r.t, err)
			for _, name := range slices.Sorted(maps.Keys(objects)) {
				raw := objects[name].Raw
				all = append(all, p.Name()+" "+resource.Resource+" "+name+" "+string(raw.GetUID())+" "+raw.GetResourceVersion())
			}
		}
	}
	slices.Sort(all)
	return all
}
