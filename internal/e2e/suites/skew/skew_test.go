// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skew_test runs programs of the first release and of the present tree in one ring:
// upgraded, mixed and downgraded.
package skew_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

// usual is the default number of operations of a worker.
const usual = 12

// TestSkew makes a ring with the first release, leaves operations open, upgrades the ring, runs
// both releases in it concurrently, and downgrades it. No acknowledged object is lost, no name has
// two owners, and the two releases do not overwrite each other's writes without end. Once the ring
// has an ID, an API server rejects changes of the membership by the first release, with a message
// to upgrade it.
//
// ATOLL_SKEW is the number of operations of each worker of the mixed ring.
func TestSkew(t *testing.T) {
	steps := ctltest.Count(t, "ATOLL_SKEW", usual)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	first := ctltest.First(t)
	planes := planetest.Shared(t, 4)
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), acme: fmt.Sprintf("acme-%x", seed),
		first: ctltest.NewBy(t, first, planes, 3), core: planes[:3], guest: planes[3],
	}
	w.present = w.first.By(ctltest.Present(t))
	w.witness = w.present.Witness(t.Context(), w.acme)
	defer w.witness.Stop()

	for _, part := range []struct {
		name string
		run  func()
	}{{"upgraded", w.upgrade}, {"mixed", func() { w.mix(steps) }}, {"at rest", w.rest}, {"downgraded", w.downgrade}} {
		start := time.Now()
		part.run()
		t.Logf("%s: %s", part.name, time.Since(start).Round(time.Second))
	}
	require.Empty(t, w.witness.Twice())
	reads, events := w.witness.Seen()
	t.Logf("the witness read all planes %d times and saw %d events", reads, events)
}

type world struct {
	t              *testing.T
	random         *rand.Rand
	first, present *ctltest.Ring
	witness        *ctltest.Witness
	acme           string
	core           []*plane.Plane
	guest          *plane.Plane
}

// either returns a random release.
func (w *world) either(random *rand.Rand) *ctltest.Ring {
	return []*ctltest.Ring{w.first, w.present}[random.IntN(2)]
}

// other returns the release other than r.
func (w *world) other(r *ctltest.Ring) *ctltest.Ring {
	if r == w.first {
		return w.present
	}
	return w.first
}

// clean requires clean audits by both releases.
func (w *world) clean() {
	w.t.Helper()
	for _, r := range []*ctltest.Ring{w.present, w.first} {
		r.Shell("auditor", w.core...).Audit(w.t)
	}
}

// repair runs "audit --repair", which also sweeps the ring.
func (w *world) repair(r *ctltest.Ring) {
	w.t.Helper()
	r.Shell("auditor", w.core...).Audit(w.t, "--repair")
}

// kill runs a command with the log, and kills the command when it has printed a text. On a busy
// machine the command may end before the kill; then the log has no open operation.
func (w *world) kill(r *ctltest.Ring, log, printed string, args ...string) {
	w.t.Helper()
	result, err := r.Shell(log, w.core...).With("-v").RunUntil(w.t.Context(), printed, args...)
	require.NoError(w.t, err)
	require.Contains(w.t, []int{ctltest.Killed, ctltest.Done}, result.Code, "%s", result)
	if result.Code == ctltest.Done {
		w.t.Logf("%s ended before it was killed", log)
	}
}

// recover settles the open operations of a log.
func (w *world) recover(r *ctltest.Ring, log string) {
	w.t.Helper()
	w.recoverOver(r, log, w.all())
}

func (w *world) recoverOver(r *ctltest.Ring, log string, planes []*plane.Plane) {
	w.t.Helper()
	w.settled(r, r.Shell(log, planes...))
}

// settled recovers with a shell of r's release. If an operation of the first release left no trace
// in the peers, nothing shows to which ring it belongs. The present release then refuses the
// operation by name, until a person confirms it with "wal recover --this-ring".
func (w *world) settled(r *ctltest.Ring, shell *ctltest.Shell) {
	w.t.Helper()
	result := shell.Recover(w.t)
	if r == w.present && result.Code == ctltest.Input {
		require.Contains(w.t, result.Output, "wal recover --this-ring", "%s", result)
		w.t.Logf("signed: %s", result)
		result = shell.End(w.t, "wal", "recover", "--this-ring")
	}
	require.Equal(w.t, ctltest.Done, result.Code, "%s", result)
}

func (w *world) all() []*plane.Plane { return append(slices.Clone(w.core), w.guest) }

// add returns the arguments of an add of a ServiceCluster.
func (w *world) add(name string, target *plane.Plane) []string {
	return []string{"servicecluster", "add", name, "-n", w.acme, "--target", target.Name(), "-f", w.cluster(name)}
}

func (w *world) removal(name string) []string {
	return []string{"servicecluster", "remove", name, "-n", w.acme}
}

func (w *world) account(name, role string) string {
	return w.present.File(w.t, fmt.Sprintf("apiVersion: catalog.kubecarrier.io/v1alpha1\nkind: Account\nmetadata:\n  name: %s\nspec:\n  roles: [%s]\n", name, role))
}

func (w *world) cluster(name string) string {
	return w.present.File(w.t, fmt.Sprintf("apiVersion: kubecarrier.io/v1alpha1\nkind: ServiceCluster\nmetadata:\n  namespace: %s\n  name: %s\nspec:\n  kubeconfigSecret:\n    name: %s\n", w.acme, name, name))
}
