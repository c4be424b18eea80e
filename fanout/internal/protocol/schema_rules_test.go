// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// difference is a write that the model's store and an API server with the CRDs judge
// differently, and why that is right.
type difference struct{ message, why string }

// stricter are writes that the model rejects, as mistakes of the sender, and an API server
// accepts.
var stricter = []difference{
	{"I9: a person's object is overwritten", "persons write their own objects; the model has an action for that"},
	{"rule: an object is adopted as a committed primary", "the same: no claim, no rule"},
	{"I7: content changes within a revision", "a person edits the home; the model has an action for that"},
	{"rule: the heartbeat adds one", "a higher one is a sign of life, too; coordinators never write it"},
	{"rule: a reservation is removed", "harmless: the removal's finalizer is not there; coordinators never write it"},
	{"rule: an object is born Reserved", "persons create objects without a claim"},
	{"rule: the claim names another peer", "CEL does not know in which cluster it runs"},
	{"rule: a claim names its record alone", "a claim that is created bound equals one that is bound later"},
	{"no claim before: rule: a claim is bound once", "the rule compares with the object before, and coordinators adopt primaries only"},
	{"rule: the epoch grows", "a number that is skipped is not missed; coordinators add one"},
	{"rule: a write of a PeerSet needs the slot", "the first release writes a PeerSet without a change, and a person may"},
}

// looser are writes that the model accepts and an API server rejects.
var looser = []difference{
	{"a Configured ServiceCluster needs kubeconfigSecret.name", "the model only knows whether two contents are equal"},
}

// judges compares the model and the API server, write by write.
type judges struct {
	t       *testing.T
	writes  int
	met     map[string]bool
	refused int
}

func (j *judges) compare(what any, model, server string) {
	j.writes++
	if server != "" {
		j.refused++
	}
	if (model == "") == (server == "") {
		return
	}
	known, said := stricter, model
	if model == "" {
		known, said = looser, server
	}
	for _, d := range known {
		if strings.Contains(said, d.message) && (model != "" || !strings.Contains(said, ", spec")) {
			j.met[d.message] = true
			return
		}
	}
	j.t.Errorf("the model says %q, the API server %q: %+v", model, server, what)
}

// TestModelKnowsTheSchema lets the model's store and the CRDs judge the same writes. Each write
// makes one or two changes to an object or PeerSet of the protocol. Store and CRD both accept a
// write, or both reject it, except for the differences in stricter and looser. So the CRDs enforce
// the rules that the explorations rely on.
//
// ATOLL_EXPLORE=deep takes all writes that make two changes to an object; the default is every
// fourth.
func TestModelKnowsTheSchema(t *testing.T) {
	stride := 4
	switch {
	case os.Getenv("ATOLL_EXPLORE") == "deep":
		stride = 1
	case testing.Short():
		stride = 16
	}
	j := &judges{t: t, met: map[string]bool{}}
	for mode, name := range map[Mode]string{Once: "serviceclusters.kubecarrier.io", Everywhere: "accounts.catalog.kubecarrier.io"} {
		d := definitionOf(t, name)
		for _, old := range starts(mode) {
			require.Empty(t, d.refusal(t, manifest(mode, old), manifest(mode, old)))
			for _, o := range neighbours(old, stride) {
				put := Command{Verb: Put, Object: o, UID: "u1", RV: "r1"}
				old := old
				old.UID, old.RV = "u1", "r1"
				_, model := (&store{}).put(&cell{obj: &old}, mode, put)
				if model != "" && !old.Claimed {
					model = "no claim before: " + model
				}
				j.compare([]Object{old, o}, model, d.refusal(t, manifest(mode, o), manifest(mode, old)))
				_, model = (&store{}).create(&cell{}, mode, Command{Verb: Create, Peer: "a", Object: o})
				j.compare(o, model, d.refusal(t, manifest(mode, o), nil))
			}
		}
	}
	d := definitionOf(t, "peersets.fanout.atoll.dev")
	for _, old := range ringStarts() {
		for _, set := range ringNeighbours(old) {
			old := old
			_, model := (&store{}).putSet(&cell{set: &old}, Command{Verb: PutPeerSet, Peer: "a", RV: old.RV, Set: &set})
			j.compare([]PeerSet{old, set}, model, d.refusal(t, ringManifest(set), ringManifest(old)))
		}
	}
	t.Logf("%d writes, %d of them refused by the CRDs", j.writes, j.refused)
	for _, d := range append(stricter, looser...) {
		if testing.Short() {
			break // a sample does not cover them all
		}
		require.True(t, j.met[d.message], "%q is no difference any longer", d.message)
	}
}

// neighbours returns o after each single edit, and after two edits: of the pairs of edits it
// takes only every stride-th.
func neighbours(o Object, stride int) []Object {
	seen := map[string]bool{}
	var near []Object
	all := edits()
	for i, e := range all {
		for j, f := range all[i:] {
			n := o
			e(&n)
			f(&n)
			if !n.Claimed {
				n = Object{Payload: n.Payload}
			}
			s := fmt.Sprintf("%+v", n)
			if !seen[s] && (j == 0 || len(seen)%stride == 0) {
				near = append(near, n)
			}
			seen[s] = true
		}
	}
	return near
}
