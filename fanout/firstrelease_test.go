// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/recordtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// firstRelease makes the writes of one add by a coordinator of the first release with a central
// log, step by step. The writes were recorded from that release.
type firstRelease struct {
	t        *testing.T
	ring     *regiontest.Ring
	records  recordtest.Records
	obj      *unstructured.Unstructured
	target   region.PeerName
	gvr      schema.GroupVersionResource
	id       string
	digest   string // of the request
	payload  string // of the content
	record   wal.Decision
	claims   map[region.PeerName]*unstructured.Unstructured
	decided  bool
	everyone bool // the object exists everywhere
}

func addOfFirstRelease(t *testing.T, r *regiontest.Ring, s *regiontest.Server, obj *unstructured.Unstructured) *firstRelease {
	t.Helper()
	api, err := region.APIFor(s.Config())
	require.NoError(t, err)
	f := &firstRelease{
		t: t, ring: r, records: recordtest.In(api), obj: obj, target: "us-east", claims: map[region.PeerName]*unstructured.Unstructured{},
		id: "1a2048c4278-" + unique("e6eff530728eb28b"), gvr: serviceClusterResource,
		digest:  "7f076163fffdbe71041bffbf52961bb3e4ff3a343225d1a268bbce505f6c9e98",
		payload: "96653a75570bf1de7004310b93f17b2601fbe3f48e6968a05eeb1fff360fa238",
	}
	if obj.GetKind() == "Account" {
		f.everyone, f.gvr = true, accountResource
		f.digest = "960a6bd39952a0a7b6adaf235c11ae347dc30fede653693fd3cd523a2de44be2"
		f.payload = f.digest
	}
	return f
}

// steps returns functions that make the writes of the add, in order.
func (f *firstRelease) steps() []func() {
	steps := []func(){f.propose}
	for _, peer := range peers {
		steps = append(steps, func() { f.claim(peer) })
	}
	steps = append(steps, f.decide, f.convert)
	for _, peer := range peers {
		if peer != f.target {
			steps = append(steps, func() { f.bind(peer) })
		}
	}
	return steps
}

func (f *firstRelease) client(peer region.PeerName) dynamic.ResourceInterface {
	conn, err := f.ring.Conn(peer)
	require.NoError(f.t, err)
	if f.obj.GetNamespace() != "" {
		return conn.Dynamic().Resource(f.gvr).Namespace(f.obj.GetNamespace())
	}
	return conn.Dynamic().Resource(f.gvr)
}

func (f *firstRelease) propose() {
	mode := 0
	if f.everyone {
		mode = 1
	}
	content := map[string]any{}
	for k, v := range f.obj.Object["spec"].(map[string]any) {
		content[k] = v
	}
	data, err := json.Marshal(map[string]any{
		"group": f.gvr.Group, "kind": f.obj.GetKind(), "namespace": f.obj.GetNamespace(), "name": f.obj.GetName(),
		"operation": map[string]any{
			"ID": f.id, "Action": "add", "Mode": mode, "Coordinator": "first/1", "Peers": peers, "Target": f.target, "Digest": f.digest,
			"Payload": f.payload, "Start": time.Now().UnixMicro(), "Central": true, "Within": !f.everyone, "Holds": f.everyone, "Lease": 60,
		},
		"record":  map[string]any{"Primary": map[string]any{"Peer": f.target, "UID": ""}},
		"content": map[string]any{"spec": content},
		"request": "29e5e2d88286ac0008b376919848720b4402c07f800e993f3b978ffe5d6608dc",
	})
	require.NoError(f.t, err)
	f.record, err = f.records.Propose(f.t.Context(), wal.Entry{
		ID: f.id, Kind: "add " + f.obj.GetKind() + "." + f.gvr.Group, Key: "operation/" + f.id, Owner: "first/1/QPL6Z2", State: "proposing",
		Data: data, Began: time.Now(),
	})
	require.NoError(f.t, err)
}

func (f *firstRelease) claim(peer region.PeerName) {
	role := "Secondary"
	if peer == f.target {
		role = "Primary"
	}
	state := map[string]any{
		"stage": "Reserved",
		"claim": map[string]any{
			"coordinator": "first/1", "digest": f.digest, "operation": f.id, "peer": string(peer), "record": f.record.UID, "role": role,
			"start": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), "target": string(f.target),
		},
	}
	obj := f.obj.DeepCopy()
	switch {
	case f.everyone:
		state["revision"] = map[string]any{"number": int64(1), "operation": f.id, "digest": f.digest}
	case peer != f.target:
		obj.Object["spec"] = map[string]any{} // a guard has no payload
	}
	require.NoError(f.t, unstructured.SetNestedMap(obj.Object, state, "spec", "fanout"))
	var err error
	f.claims[peer], err = f.client(peer).Create(f.t.Context(), obj, metav1.CreateOptions{})
	require.NoError(f.t, err)
}

func (f *firstRelease) decide() {
	_, err := f.records.Decide(f.t.Context(), f.id, f.record.Version, string(f.target), string(f.claims[f.target].GetUID()))
	require.NoError(f.t, err)
	f.decided = true
}

func (f *firstRelease) convert() {
	obj := f.claims[f.target].DeepCopy()
	obj.SetFinalizers([]string{"fanout.atoll.dev/primary"})
	stage := "Configured"
	if f.everyone {
		stage = "Active"
		require.NoError(f.t, unstructured.SetNestedMap(obj.Object, map[string]any{"peer": string(f.target), "uid": string(obj.GetUID()), "term": int64(1)}, "spec", "fanout", "home"))
		require.NoError(f.t, unstructured.SetNestedSlice(obj.Object, []any{map[string]any{"number": int64(1), "operation": f.id}}, "spec", "fanout", "history"))
	}
	f.put(f.target, obj, stage)
}

func (f *firstRelease) bind(peer region.PeerName) {
	obj := f.claims[peer].DeepCopy()
	require.NoError(f.t, unstructured.SetNestedMap(obj.Object, map[string]any{"peer": string(f.target), "uid": string(f.claims[f.target].GetUID())}, "spec", "fanout", "bound"))
	f.put(peer, obj, "Reserved")
}

func (f *firstRelease) put(peer region.PeerName, obj *unstructured.Unstructured, stage string) {
	require.NoError(f.t, unstructured.SetNestedField(obj.Object, stage, "spec", "fanout", "stage"))
	var err error
	f.claims[peer], err = f.client(peer).Update(f.t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(f.t, err)
}

// requireFate fails the test unless the peers match the record: if the record was decided, every
// peer must have its object, otherwise no peer may have one.
func (f *firstRelease) requireFate() {
	f.t.Helper()
	for _, peer := range peers {
		got, err := f.client(peer).Get(f.t.Context(), f.obj.GetName(), metav1.GetOptions{})
		if !f.decided {
			require.True(f.t, apierrors.IsNotFound(err), "%s: %v", peer, err)
			continue
		}
		require.NoError(f.t, err)
		stage, _, _ := unstructured.NestedString(got.Object, "spec", "fanout", "stage")
		switch {
		case f.everyone:
			require.Equal(f.t, "Active", stage, "%s", peer)
		case peer == f.target:
			require.Equal(f.t, "Configured", stage, "%s", peer)
		}
	}
}

// firstReleaseObjects returns an object that exists once and one that exists everywhere.
func firstReleaseObjects(acme string) map[string]*unstructured.Unstructured {
	sc := newServiceCluster(acme, unique("db"))
	_ = unstructured.SetNestedField(sc.Object, "db", "spec", "kubeconfigSecret", "name")
	return map[string]*unstructured.Unstructured{"once": sc, "everywhere": newAccount(unique("globex"))}
}

// TestAddsOfTheFirstRelease: a coordinator of the first release dies after each step of an add with
// a record. A coordinator of this release, whose log is wrapped, settles the add by that record: by
// a recovery from the log, or by a sweep and then a recovery.
func TestAddsOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"recovered", "swept, then recovered"} {
		for _, mode := range []string{"once", "everywhere"} {
			t.Run(way+" "+mode, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r, s := newRing(t), newCentral(t)
					log := sharedLog(t, s, &line{})
					c := coordinator(t, r, measured{log}, fanout.Options{MaxInFlight: time.Nanosecond})
					acme := addAccount(t, c)
					for died := 1; ; died++ {
						f := addOfFirstRelease(t, r, s, firstReleaseObjects(acme)[mode])
						steps := f.steps()
						if died > len(steps) {
							return
						}
						for _, step := range steps[:died] {
							step()
						}
						if way != "recovered" {
							_, _ = c.Sweep(t.Context()) // recovery from the log settles an add that this sweep cannot settle
						}
						_, err := c.Recover(t.Context())
						require.NoError(t, err, "after %d steps", died)
						requireClean(t, c)
						requireSettled(t, log)
						f.requireFate()
						for _, peer := range peers {
							require.NoError(t, ignoreNotFound(f.client(peer).Delete(t.Context(), f.obj.GetName(), metav1.DeleteOptions{})))
						}
						_, err = c.Sweep(t.Context())
						require.NoError(t, err)
					}
				})
			})
		}
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// TestRivalOfTheFirstRelease: an add meets a claim with a record. If the record is decided, the add
// is rejected. If the record is undecided and its coordinator shows no sign of life, the add
// withdraws the record and is committed. A coordinator whose log holds no records leaves such
// claims unchanged, and its add is aborted.
func TestRivalOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := newRing(t), newCentral(t)
		c := coordinator(t, r, measured{sharedLog(t, s, &line{})}, fanout.Options{MaxInFlight: time.Nanosecond})
		alone := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		acme := addAccount(t, c)
		for died := 2; died <= 5; died++ { // from the first claim to the decision
			f := addOfFirstRelease(t, r, s, firstReleaseObjects(acme)["once"])
			for _, step := range f.steps()[:died] {
				step()
			}
			was := map[region.PeerName]types.UID{}
			for peer, claim := range f.claims {
				was[peer] = claim.GetUID()
			}
			_, err := alone.Add(t.Context(), f.obj, fanout.AddOptions{Target: "eu-west"})
			require.ErrorIs(t, err, fanout.ErrAborted)
			require.ErrorContains(t, err, "use the central log of its coordinator")
			for peer, uid := range was {
				got, err := f.client(peer).Get(t.Context(), f.obj.GetName(), metav1.GetOptions{})
				require.NoError(t, err)
				require.Equal(t, uid, got.GetUID())
			}

			op, err := c.Add(t.Context(), f.obj, fanout.AddOptions{Target: "eu-west"})
			if f.decided {
				held, ok := errors.AsType[*fanout.HeldError](err)
				require.True(t, ok, "%v", err)
				require.EqualValues(t, "us-east", held.Holder)
			} else {
				require.NoError(t, err, "after %d steps", died)
				require.Equal(t, fanout.Done, op.State)
			}
			_, err = c.Recover(t.Context())
			require.NoError(t, err)
			requireClean(t, c)
		}
	})
}
