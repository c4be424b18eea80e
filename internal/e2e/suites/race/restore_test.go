// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package race_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// TestRestores restores a random peer from a backup, in each of its rounds, while processes of
// atollctl add and remove ServiceClusters. The backup is taken and restored at random moments: as a
// directory, or with etcdutl, with and without a higher revision. In half of the rounds, the other
// peers note an epoch of the peer that is later than the backup. Then processes, some of which are
// killed, bring the peer back, and a person deletes the objects that these processes name.
//
// The witness sees no second owner, except in the restored peer until it is back. After the
// comeback and the commands that the audit prints, an audit finds no violation. An acknowledged
// object is in all planes, or a finding reported its loss. An object that was denied or removed is
// in no plane.
//
// Some operations run with kubeconfigs that are swapped, or of which two lead to one cluster. Their
// output names the wrong cluster, with the exceptions that hand.mislead documents, and no add
// succeeds. The checks above also cover the writes of these operations.
//
// ATOLL_RESTORES is the number of rounds.
func TestRestores(t *testing.T) {
	rounds := ctltest.Count(t, "ATOLL_RESTORES", 2)
	var options []plane.Options
	for _, name := range plane.Names(3) {
		options = append(options, plane.Options{Name: name})
	}
	planes := planetest.NewAll(t, options...) // not shared planes: the test restores them
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := &restores{
		t: t, ring: ctltest.New(t, planes, len(planes)), random: rand.New(rand.NewPCG(seed, 0)),
		acme: fmt.Sprintf("acme-%x", seed), codes: map[int]int{},
	}
	r.first = r.random.IntN(2)
	r.ring.Shell("first").Succeed(t, "account", "add", "-f", r.ring.File(t, fmt.Sprintf("apiVersion: catalog.kubecarrier.io/v1alpha1\nkind: Account\nmetadata:\n  name: %s\nspec:\n  roles: [Tenant]\n", r.acme)))
	r.noting = r.coordinator()
	r.witness = r.ring.Witness(t.Context(), r.acme)
	defer r.witness.Stop()
	r.begin()

	start := time.Now()
	for n := range rounds {
		r.round(n)
	}
	r.end()
	t.Logf("%d restores, %d of them noted, in %s; %d comebacks were killed, %d refused; %d losses reported, %d objects that were removed since were deleted by a person",
		rounds, r.noted, time.Since(start).Round(time.Second), r.killed, r.refused, r.lost, r.deleted)
	t.Logf("%d operations, by exit code: %v; %d more were refused for wrong clusters", r.operations, r.codes, r.misled)
	require.Positive(t, r.misled)
	reads, events := r.witness.Seen()
	t.Logf("the witness read all planes %d times and saw %d events", reads, events)
}

// restores is a ring whose peers are restored one after the other.
type restores struct {
	t       *testing.T
	ring    *ctltest.Ring
	random  *rand.Rand
	witness *ctltest.Witness
	noting  *fanout.Coordinator
	acme    string
	hands   hands
	first   int // first round with notes
	// restarts is incremented when a restart of an API server begins and when it ends: it is odd
	// during a restart.
	restarts atomic.Int64

	operations, misled, noted, killed, refused, lost, deleted int
	codes                                                     map[int]int
}

// round restores one peer.
func (r *restores) round(n int) {
	t := r.t
	t.Helper()
	at := r.ring.Planes[r.random.IntN(len(r.ring.Planes))]
	how, restore := "the directory", at.Restore
	if kind := r.random.IntN(3); kind > 0 {
		bump := uint64(kind-1) * 1_000_000
		how, restore = fmt.Sprintf("a snapshot, %d revisions ahead", bump), func(ctx context.Context) error { return at.RestoreSnapshot(ctx, bump) }
	}
	notes := n%2 == r.first
	begin, took := time.Now(), []string{}
	phase := func(name string) {
		took = append(took, fmt.Sprintf("%s %s", name, time.Since(begin).Round(100*time.Millisecond)))
		begin = time.Now()
	}
	r.wait(time.Second)
	r.restart(at.Save)
	phase("saved")
	r.wait(time.Second)
	if notes {
		r.noted++
		r.note(at)
	}
	r.wait(2 * time.Second)
	phase("noted")
	r.witness.Doubt(at.Name())
	r.restart(restore)
	r.wait(time.Second)
	phase("restored")
	r.comeback(at)
	phase("back")
	r.hands.pause()
	defer r.hands.resume()
	phase("paused")
	r.recover()
	phase("recovered")
	reported := r.mend()
	phase("mended")
	t.Logf("round %d: %s in %s, noted: %v, reported: %v; %s", n, how, at.Name(), notes, reported, strings.Join(took, ", "))
	r.witness.Believe(at.Name())
	r.requireTruth(reported)
	require.Empty(t, r.witness.Twice())
}

// restart runs do, which restarts an API server.
func (r *restores) restart(do func(context.Context) error) {
	r.t.Helper()
	r.restarts.Add(1)
	defer r.restarts.Add(1)
	require.NoError(r.t, do(r.t.Context()))
}

func (r *restores) wait(most time.Duration) {
	sleep(r.t.Context(), time.Duration(r.random.Int64N(int64(most))))
}

// coordinator returns a coordinator that writes notes often while Start runs. Start also sweeps and
// recovers.
func (r *restores) coordinator() *fanout.Coordinator {
	t := r.t
	t.Helper()
	var conns []*region.Conn
	for _, p := range r.ring.Planes {
		conn, err := region.NewConn(planetest.PeerAs(t, p, p.Kubeconfig()), region.ConnOptions{})
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	log, err := wal.Open(filepath.Join(t.TempDir(), "noting.db"), wal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	c, err := fanout.New(region.Fixed(conns...), log, fanout.Options{Kinds: account.Kinds(), SweepEvery: 100 * time.Millisecond, NoteEvery: time.Millisecond, Observer: &fanout.Observer{}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Wait(context.WithoutCancel(t.Context()))) })
	return c
}

// note makes the other peers record an epoch of the peer that is later than the epoch in the
// backup.
func (r *restores) note(at *plane.Plane) {
	t := r.t
	t.Helper()
	epoch := func(p *plane.Plane) (own, noted int64) {
		sets, err := r.ring.Objects(t.Context(), p.Name(), ctltest.PeerSets, "")
		require.NoError(t, err)
		spec := sets["default"].Raw.Object["spec"].(map[string]any)
		own, _ = spec["epoch"].(int64)
		notes, _ := spec["notes"].([]any)
		for _, n := range notes {
			if note := n.(map[string]any); note["peer"] == at.Name() {
				noted, _ = note["epoch"].(int64)
			}
		}
		return own, noted
	}
	saved, _ := epoch(at)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.noting.Start(ctx)
	}()
	defer func() {
		stop()
		<-ended
	}()
	for _, p := range r.ring.Planes {
		if p != at {
			planetest.Eventually(t, time.Minute, "a note in "+p.Name(), func(context.Context) error {
				if _, noted := epoch(p); noted <= saved {
					return fmt.Errorf("it has noted epoch %d of %s, want more than %d", noted, at.Name(), saved)
				}
				return nil
			})
		}
	}
}

var removedSince = regexp.MustCompile(`serviceclusters ([a-z0-9-]+)/([a-z0-9-]+) in ([a-z0-9-]+)`)

// comeback runs the command that brings a peer back. It kills the command at times, and deletes the
// objects that the command names, as a person would.
func (r *restores) comeback(at *plane.Plane) {
	t := r.t
	t.Helper()
	shell := r.ring.Shell("comeback")
	for n := 0; ; n++ {
		require.Less(t, n, 20, "the comeback of %s does not end", at.Name())
		kill := ctltest.Never
		if n < 3 && r.random.IntN(2) == 0 {
			kill = 1 + time.Duration(r.random.Int64N(int64(time.Second)))
		}
		result, err := shell.Run(t.Context(), kill, "peer", "comeback", at.Name())
		require.NoError(t, err)
		switch {
		case result.Code == ctltest.Done:
			return
		case result.Code == ctltest.Killed:
			r.killed++
		case result.Code == ctltest.Conflict && removedSince.MatchString(result.Output):
			r.refused++
			for _, named := range removedSince.FindAllStringSubmatch(result.Output, -1) {
				require.Equal(t, []string{r.acme, at.Name()}, []string{named[1], named[3]}, "%s", result)
				r.forget(at, named[2])
			}
		default:
			// The API server may still be starting, or an operation ending.
			t.Logf("%s", result)
			r.wait(time.Second)
		}
	}
}

// forget deletes an object and removes its finalizers, as a person does. The object must not
// be acknowledged.
func (r *restores) forget(at *plane.Plane, name string) {
	t := r.t
	t.Helper()
	r.deleted++
	objects, err := r.ring.Objects(t.Context(), at.Name(), ctltest.ServiceClusters, r.acme)
	require.NoError(t, err)
	o, there := objects[name]
	if !there {
		return
	}
	r.hands.requireNotAcknowledged(t, o)
	client := planetest.Dynamic(t, at.Config()).Resource(ctltest.ServiceClusters).Namespace(r.acme)
	require.NoError(t, client.Delete(t.Context(), name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(o.UID)}))
	_, err = client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// recover settles the open operations in the logs of all hands.
func (r *restores) recover() {
	r.t.Helper()
	leads := map[string]*plane.Plane{}
	for _, p := range r.ring.Planes {
		leads[p.Name()] = p
	}
	for _, h := range r.hands.all {
		for _, shell := range []*ctltest.Shell{h.shell, h.misleading(r, leads)} {
			result := shell.Recover(r.t)
			require.Equal(r.t, ctltest.Done, result.Code, "%s", result)
			if result.Took > 5*time.Second {
				r.t.Logf("%s", result)
			}
		}
	}
}

var lossOf = regexp.MustCompile(`operation (\S+) committed ServiceCluster \S+ in \S+ \(UID ([0-9a-f-]+)\)`)

// loss is an object that an audit reported as lost.
type loss struct{ operation, uid string }

// finding is one item of an audit.
type finding struct {
	Class, Mend, Invariant, Text string
	Object                       struct{ Namespace, Name string }
}

// mend runs the commands that audits print until an audit is clean, and returns the reported
// losses.
func (r *restores) mend() []loss {
	t := r.t
	t.Helper()
	auditor := r.ring.Shell("auditor")
	var losses []loss
	for n := 0; ; n++ {
		require.Less(t, n, 10, "audits do not become clean")
		result := auditor.End(t, "audit", "-o", "json")
		if result.Code == ctltest.Done {
			return losses
		}
		mends := map[string]bool{}
		for _, f := range findings(t, result) {
			mend := f.Mend
			if f.Invariant == "lost" {
				named := lossOf.FindStringSubmatch(f.Text)
				require.NotNil(t, named, "%+v", f)
				require.Equal(t, "Restored", f.Class, "%+v", f)
				if l := (loss{named[1], named[2]}); !slices.Contains(losses, l) {
					losses = append(losses, l)
					r.lost++
				}
				// The peer is back, so the name of the object may be released.
				mend = "atollctl servicecluster release " + f.Object.Name + " -n " + f.Object.Namespace
				require.Contains(t, f.Text, mend)
			}
			mends[mend] = true
		}
		for mend := range mends {
			args, ok := strings.CutPrefix(mend, "atollctl ")
			require.True(t, ok, "%s", result)
			result := auditor.End(t, strings.Fields(args)...)
			t.Logf("%s: exit code %d after %s", mend, result.Code, result.Took.Round(100*time.Millisecond))
		}
	}
}
