// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// simulation computes the statuses of Peers in any order, each from the current or from stale Peers.
type simulation struct {
	peers   []*masterv1alpha1.Peer
	reaches map[string]types.UID
	bound   map[string][]region.Key
	masters map[types.UID]bool
}

func (s *simulation) findings(i int, view []*masterv1alpha1.Peer) findings {
	p := s.peers[i]
	f := findings{
		kubeconfig: kubeconfig{usable: true, done: true, reason: masterv1alpha1.PeerReasonAccepted},
		uid:        s.reaches[p.Name], plane: "plane", looked: true, healthKnown: true, health: region.Health{State: region.Healthy},
	}
	if accepted(p) {
		f.uid = p.Status.ClusterUID
		f.known, f.bound = true, s.bound[p.Name]
	}
	f.master = s.masters[f.uid]
	for j, q := range view {
		if j != i {
			f.others = append(f.others, q)
		}
	}
	return f
}

func (s *simulation) snapshot() []*masterv1alpha1.Peer {
	return slices.Clone(s.peers) // safe: a status is replaced, never modified
}

func (s *simulation) step(i int, view []*masterv1alpha1.Peer, now time.Time) bool {
	status := statusOf(s.peers[i], s.findings(i, view), now)
	changed := fmt.Sprint(status) != fmt.Sprint(s.peers[i].Status)
	next := s.peers[i].DeepCopy()
	next.Status = status
	s.peers[i] = next
	return changed
}

// The test draws Peers, their clusters and their Bound regions. It computes their statuses in an arbitrary order, from
// current or stale Peers. After each step, the order of the Peers does not influence which Peer serves a region. In the
// end, no status changes any more, no cluster has two accepted Peers, and each region that is Bound in an accepted peer
// is listed by exactly one Peer.
func TestOnePeerPerRegionAndCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &simulation{reaches: map[string]types.UID{}, bound: map[string][]region.Key{}, masters: map[types.UID]bool{}}
		n := rapid.IntRange(2, 5).Draw(t, "peers")
		clusters := []types.UID{"plane", "one", "two", "three"}
		s.masters["plane"] = rapid.Bool().Draw(t, "plane is a master")
		s.masters["three"] = rapid.Bool().Draw(t, "three is a master")
		for i := range n {
			name := fmt.Sprintf("p%d", i)
			if i == 0 {
				name = "local"
			}
			s.peers = append(s.peers, peerOf(name, rapid.IntRange(0, 3).Draw(t, "age"), ""))
			s.reaches[name] = rapid.SampledFrom(clusters).Draw(t, "cluster")
			for _, r := range []string{"a", "b"} {
				if rapid.Bool().Draw(t, "bound") {
					s.bound[name] = append(s.bound[name], region.Key{Provider: "loodse", Name: r})
				}
			}
		}
		now := time.Unix(2_000_000, 0)
		views := [][]*masterv1alpha1.Peer{s.snapshot()}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "peer")
			view := views[max(0, len(views)-1-rapid.IntRange(0, 3).Draw(t, "lag"))]
			now = now.Add(time.Second)
			s.step(i, view, now)
			views = append(views, s.snapshot())
			checkReaders(t, s.peers)
		}
		order := rand.New(rand.NewPCG(1, uint64(n))) // the same in every run
		for round := 0; ; round++ {
			require.Less(t, round, 20, "it never comes to rest")
			moved := false
			for _, i := range order.Perm(n) {
				now = now.Add(time.Second)
				moved = s.step(i, s.snapshot(), now) || moved
			}
			if !moved {
				break
			}
		}
		checkEnd(t, s)
	})
}

// checkReaders checks that readers agree on the served regions, whatever the order of the Peers.
func checkReaders(t *rapid.T, peers []*masterv1alpha1.Peer) {
	served := servedBy(peers)
	reversed := slices.Clone(peers)
	slices.Reverse(reversed)
	require.Equal(t, served, servedBy(reversed))
}

func checkEnd(t *rapid.T, s *simulation) {
	byCluster := map[types.UID]string{}
	listed := map[region.Key]string{}
	for _, p := range s.peers {
		unique := reasonIn(p.Status, masterv1alpha1.PeerConditionRegionsUnique)
		if !accepted(p) {
			require.Empty(t, p.Status.Regions)
			require.Contains(t, []masterv1alpha1.PeerConditionReason{masterv1alpha1.PeerReasonIsMaster, masterv1alpha1.PeerReasonSameCluster}, unique)
			continue
		}
		uid := p.Status.ClusterUID
		require.Empty(t, byCluster[uid], "two Peers for one cluster")
		byCluster[uid] = p.Name
		require.False(t, s.masters[uid] && (p.Name != "local" || uid != "plane"), "a master is a peer")
		for _, key := range keysOf(p) {
			require.Empty(t, listed[key], "two Peers list %s", key)
			listed[key] = p.Name
		}
	}
	for _, p := range s.peers {
		if !accepted(p) {
			continue
		}
		for _, key := range s.bound[p.Name] {
			require.NotEmpty(t, listed[key], "%s is Bound and no Peer serves it", key)
			if listed[key] != p.Name {
				c := meta.FindStatusCondition(p.Status.Conditions, string(masterv1alpha1.PeerConditionRegionsUnique))
				require.Equal(t, string(masterv1alpha1.PeerReasonRegionServedTwice), c.Reason)
				require.Contains(t, c.Message, listed[key])
			}
		}
	}
	// The plane's own Peer is never refused.
	if s.reaches["local"] == "plane" {
		require.Equal(t, "local", byCluster["plane"])
	}
}

// Ready is derived from the other conditions. A condition that is Unknown does not make Ready False, except if types or
// rights are missing.
func TestReadySumsUp(t *testing.T) {
	kc, reach, unique := masterv1alpha1.PeerConditionKubeconfigValid, masterv1alpha1.PeerConditionReachable, masterv1alpha1.PeerConditionRegionsUnique
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"nothing":    {nil, "Unknown Pending"},
		"all":        {[]metav1.Condition{condition(kc, "True", "x", ""), condition(reach, "True", "x", ""), condition(unique, "True", "x", "")}, "True Reachable"},
		"one false":  {[]metav1.Condition{condition(kc, "True", "x", ""), condition(reach, "Unknown", "u", ""), condition(unique, "False", "f", "")}, "False f"},
		"two false":  {[]metav1.Condition{condition(kc, "False", "k", ""), condition(reach, "False", "r", ""), condition(unique, "Unknown", "u", "")}, "False k"},
		"a master":   {[]metav1.Condition{condition(kc, "False", "k", ""), condition(unique, "False", masterv1alpha1.PeerReasonIsMaster, "")}, "False IsMaster"},
		"no types":   {[]metav1.Condition{condition(kc, "True", "x", ""), condition(reach, "True", "x", ""), condition(unique, "Unknown", masterv1alpha1.PeerReasonCRDsMissing, "")}, "False CRDsMissing"},
		"not there":  {[]metav1.Condition{condition(kc, "True", "x", ""), condition(reach, "False", "r", ""), condition(unique, "Unknown", masterv1alpha1.PeerReasonCRDsMissing, "")}, "False r"},
		"one absent": {[]metav1.Condition{condition(kc, "True", "x", ""), condition(reach, "True", "x", "")}, "Unknown Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			got := sum(c.conditions)
			require.Equal(t, c.want, fmt.Sprintf("%s %s", got.Status, got.Reason))
		})
	}
}

// Text from a peer is cut to the limits of the schema, and errors that differ only in a port do not change the status.
func TestStatusIsBoundedAndStable(t *testing.T) {
	p := peerOf("eu", 0, "uid", "a")
	f := findings{
		kubeconfig:  kubeconfig{usable: true, reason: masterv1alpha1.PeerReasonAccepted},
		health:      region.Health{State: region.Unhealthy, Err: errors.New("read tcp 127.0.0.1:40001" + strings.Repeat("x", 100_000))},
		healthKnown: true, uid: "uid",
	}
	now := time.Unix(2_000_000, 0)
	p.Status = statusOf(p, f, now)
	for _, c := range p.Status.Conditions {
		require.Less(t, len(c.Message), 2000)
		require.NotEmpty(t, c.Reason)
	}
	require.Len(t, p.Status.Regions, 1)
	f.health.Err = errors.New("read tcp 127.0.0.1:40002")
	f.health.LastContact = now.Add(time.Minute)
	require.Equal(t, p.Status, statusOf(p, f, now.Add(time.Hour)))

	f.health, f.known = region.Health{State: region.Healthy}, true
	for i := range 2 * maxRegions {
		f.bound = append(f.bound, region.Key{Provider: "loodse", Name: fmt.Sprint(i)})
	}
	require.Len(t, statusOf(p, f, now).Regions, maxRegions)
}
