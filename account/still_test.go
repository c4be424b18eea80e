// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/stilltest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// idlePeers simulates any number of peers in which nothing changes, all with the same Accounts.
// Each host name is a peer. idlePeers uses almost no memory, so a test can attribute the growth of
// the heap to the Replicator.
type idlePeers struct {
	home, replica string // lists of Accounts, of the home and of every other peer
	members       string // the members that each PeerSet lists
	writes        atomic.Int64

	mu   sync.Mutex
	dead map[string]chan struct{} // closed once the host is killed
}

// stillOf returns peers with the objects of a world. The parameter listed is the number of members
// in each PeerSet.
func stillOf(w *world, listed int) *idlePeers {
	w.t.Helper()
	s := &idlePeers{dead: map[string]chan struct{}{}}
	for _, peer := range peerNames {
		list, err := w.conn(peer).Dynamic().Resource(resource).List(w.t.Context(), metav1.ListOptions{})
		require.NoError(w.t, err)
		text, err := list.MarshalJSON()
		require.NoError(w.t, err)
		if peer == w.home(list.Items[0].GetName()) {
			s.home = string(text)
		} else {
			s.replica = string(text)
		}
	}
	members := make([]fanoutv1alpha1.Member, listed)
	for i := range members {
		members[i] = activeMember(stillName(i))
	}
	text, err := json.Marshal(members)
	require.NoError(w.t, err)
	s.members = string(text)
	return s
}

func stillName(i int) string { return fmt.Sprintf("peer-%04d", i) }

func activeMember(name string) fanoutv1alpha1.Member {
	return fanoutv1alpha1.Member{Peer: name, UID: types.UID("0a6d51bf-6ad4-4b11-8c5f-" + name), State: fanoutv1alpha1.PeerActive}
}

// directory returns a Directory of n of the peers. The first peer has the homes.
func (s *idlePeers) directory(t testing.TB, n int) region.Directory {
	t.Helper()
	conns := make([]*region.Conn, n)
	for i := range conns {
		creds, err := region.FromConfig(&rest.Config{Host: "http://" + stillName(i) + ".invalid", Transport: s})
		require.NoError(t, err)
		conns[i], err = region.NewConn(region.Peer{Name: region.PeerName(stillName(i)), Credentials: creds}, region.ConnOptions{})
		require.NoError(t, err)
	}
	return region.Fixed(conns...)
}

// kill makes a peer unreachable.
func (s *idlePeers) kill(host string) { close(s.death(host)) }

func (s *idlePeers) death(host string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead[host] == nil {
		s.dead[host] = make(chan struct{})
	}
	return s.dead[host]
}

func (s *idlePeers) RoundTrip(r *http.Request) (*http.Response, error) {
	host, _, _ := strings.Cut(r.URL.Host, ".")
	death := s.death(host)
	select {
	case <-death:
		return nil, fmt.Errorf("dial %s: %w", host, syscall.ECONNREFUSED)
	default:
	}
	if r.Method != http.MethodGet {
		s.writes.Add(1)
	}
	resp := &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Request: r, ContentLength: -1,
	}
	answer := func(format string, args ...any) (*http.Response, error) {
		resp.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(format, args...)))
		return resp, nil
	}
	self := activeMember(host)
	query := r.URL.Query()
	switch {
	case query.Get("watch") != "":
		body, err := stilltest.Watch(r, death)
		resp.Body = body
		return resp, err
	case strings.HasSuffix(r.URL.Path, "/namespaces/kube-system"):
		return answer(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, self.UID)
	case strings.HasSuffix(r.URL.Path, "/peersets"):
		return answer(`{"kind":"PeerSetList","apiVersion":"fanout.atoll.dev/v1alpha1","metadata":{"resourceVersion":"1"},"items":[
			{"kind":"PeerSet","apiVersion":"fanout.atoll.dev/v1alpha1","metadata":{"name":%q,"uid":%q,"resourceVersion":"1"},
			"spec":{"self":{"peer":%q,"uid":%q,"state":%q},"members":%s,"epoch":1}}]}`,
			fanoutv1alpha1.PeerSetName, host, self.Peer, self.UID, self.State, s.members)
	case strings.HasSuffix(r.URL.Path, "/accounts") && host == stillName(0):
		return answer("%s", s.home)
	case strings.HasSuffix(r.URL.Path, "/accounts"):
		return answer("%s", s.replica)
	default:
		resp.StatusCode = http.StatusNotFound
		return answer(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

// With manyPeers peers the status of an Account stays small, and is complete after at most five
// writes. After that nothing is written to the plane, until a peer becomes unreachable: then at
// most five writes follow. Nothing is ever written to a peer.
func TestThousandPeers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const peers, few = manyPeers, 5 // a burst of four, and a last one
		w := newSlowWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}, alice))
		time.Sleep(time.Minute)
		require.Equal(t, v1alpha1.AccountReady, accountIn(t, w.api, "acme").Status.Phase)
		w.stop()
		s := stillOf(w, 3)
		directory := s.directory(t, peers)
		r, err := NewReplicator(w.api, directory, slow(t, directory), Options{RemovalCap: noCap})
		require.NoError(t, err)
		w.plane.Reset()
		run(t, r.Start)
		time.Sleep(time.Minute)
		status := accountIn(t, w.api, "acme").Status
		require.Equal(t, v1alpha1.PeerSummary{Total: peers, Present: peers}, status.Peers)
		require.Equal(t, v1alpha1.AccountReady, status.Phase)
		require.Less(t, statusBytes(t, w), 1<<10)
		require.LessOrEqual(t, writesTo(w.plane), few)

		w.plane.Reset()
		time.Sleep(10 * time.Minute)
		require.Zero(t, writesTo(w.plane))

		s.kill(stillName(peers / 2))
		time.Sleep(10 * time.Minute)
		status = accountIn(t, w.api, "acme").Status
		require.Equal(t, v1alpha1.PeerSummary{Total: peers, Present: peers - 1, Unknown: []string{stillName(peers / 2)}}, status.Peers)
		require.Equal(t, metav1.ConditionUnknown, condition(status, "Ready").Status)
		require.Less(t, statusBytes(t, w), 2<<10)
		require.LessOrEqual(t, writesTo(w.plane), few)

		for i := 1; i < peers; i++ {
			if i != peers/2 {
				s.kill(stillName(i))
			}
		}
		time.Sleep(10 * time.Minute)
		status = accountIn(t, w.api, "acme").Status
		require.Equal(t, int32(1), status.Peers.Present)
		require.Len(t, status.Peers.Unknown, maxExceptions)
		require.Less(t, statusBytes(t, w), 24<<10)
		require.Zero(t, s.writes.Load())
	})
}

func statusBytes(t testing.TB, w *world) int {
	t.Helper()
	text, err := json.Marshal(get(t, w.api, resource, "", "acme").Object["status"])
	require.NoError(t, err)
	return len(text)
}

// A peer that hangs does not delay the other peers for long: they get changes within seconds,
// though each operation also sends requests to the peer that hangs.
func TestAPeerThatHangsDelaysNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		accounts := 64
		if testing.Short() {
			accounts = 16
		}
		w := &world{t: t}
		w.ring, _ = newRing(t)
		var peers []region.Peer
		for _, name := range peerNames {
			creds, err := region.FromConfig(w.ring.Server(name).Config())
			require.NoError(t, err)
			peers = append(peers, region.Peer{Name: name, Credentials: creds})
		}
		source, err := region.FromPeers(peers...)
		require.NoError(t, err)
		probed, err := region.NewRing(source, region.Options{})
		require.NoError(t, err)
		run(t, probed.Start)
		<-probed.Synced()
		w.c = slow(t, probed)
		w.plane = regiontest.NewServer(regiontest.Options{Name: "plane", Definitions: definitions(t)})
		t.Cleanup(w.plane.Close)
		w.api, err = region.APIFor(w.plane.Config())
		require.NoError(t, err)
		w.r, err = NewReplicator(w.api, probed, w.c, Options{RemovalCap: noCap})
		require.NoError(t, err)
		run(t, w.r.Start)
		name := func(i int) string { return fmt.Sprintf("acme-%02d", i) }
		for i := range accounts {
			w.create(newAccount(name(i), []any{"Tenant"}, alice))
		}
		time.Sleep(time.Minute)
		lost := w.away(name(0))
		change := func(role v1alpha1.AccountRole) time.Duration {
			began := time.Now()
			for i := range accounts {
				w.edit(w.api, name(i), setRoles(string(role)))
			}
			for i := range accounts {
				for _, peer := range peerNames {
					for peer != lost && !slices.Equal(w.held(peer, name(i)), []v1alpha1.AccountRole{role}) {
						time.Sleep(10 * time.Millisecond)
					}
				}
			}
			return time.Since(began)
		}
		require.Less(t, change(v1alpha1.AccountProvider), time.Second)
		w.ring.Server(lost).Inject(regiontest.Fault{Times: -1, Do: regiontest.Hang()})
		time.Sleep(2 * time.Minute)
		conn, err := probed.Conn(lost)
		require.NoError(t, err)
		require.Equal(t, region.Unhealthy, conn.Health().State)
		// One round of workers waits a second for the peer that hangs. If each operation waited for
		// the timeout of a call, this would take minutes.
		require.Less(t, change(v1alpha1.AccountTenant), 3*time.Second)
		for i := range accounts {
			status := accountIn(t, w.api, name(i)).Status
			require.Equal(t, []string{string(lost)}, status.Peers.Unknown)
		}
		// Removals wait for the peer that hangs, but not for one another. Meanwhile the other
		// Accounts stay in effect.
		began := time.Now()
		for i := range accounts / 2 {
			w.delete(name(i))
		}
		for i := range accounts / 2 {
			w.await(name(i), func(s v1alpha1.AccountStatus) bool { return condition(s, ConditionRemovalHeld).Reason == holdUnknown }, "held")
		}
		require.Less(t, time.Since(began), 5*time.Second)
		time.Sleep(time.Minute)
		for i := range accounts / 2 {
			require.Equal(t, v1alpha1.AccountTerminating, accountIn(t, w.api, name(i)).Status.Phase)
		}
		w.ring.Server(lost).Reset()
		time.Sleep(3 * time.Minute)
		for i := range accounts / 2 {
			w.awaitGone(name(i))
		}
		for i := accounts / 2; i < accounts; i++ {
			require.Equal(t, v1alpha1.AccountReady, accountIn(t, w.api, name(i)).Status.Phase)
			require.Equal(t, tenant, w.held(lost, name(i)))
		}
	})
}
