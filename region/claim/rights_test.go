// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// ledger lets the user "arbiter" do what a role says, and notes what it used.
type ledger struct {
	mu      sync.Mutex
	granted map[string]bool // used
}

func ledgerOf(role *rbacv1.ClusterRole) *ledger {
	l := &ledger{granted: map[string]bool{}}
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			l.granted[fmt.Sprintf("%s %s.%s", verb, rule.Resources[0], rule.APIGroups[0])] = false
		}
	}
	return l
}

func (l *ledger) authorize(r regiontest.Request) error {
	if r.User.Name != "arbiter" {
		return nil
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	right := fmt.Sprintf("%s %s.%s", r.Verb, resource, r.Group)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.granted[right]; !ok {
		return fmt.Errorf("arbiters have no right to %s", right)
	}
	l.granted[right] = true
	return nil
}

func (l *ledger) unused() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(func(yield func(string) bool) {
		for right := range maps.Keys(l.granted) {
			if !l.granted[right] && !yield(right) {
				return
			}
		}
	})
}

// TestTheRightsSufficeAndAreUsed: nothing is refused, and nothing is granted in vain.
func TestTheRightsSufficeAndAreUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peers, plane := ledgerOf(rights.Claims()), ledgerOf(rights.ClaimsCentral())
		tokens := map[string]regiontest.User{"a": {Name: "arbiter"}, "admin": {Name: "admin"}}
		as := func(s *regiontest.Server, token string) region.Credentials {
			config := s.Config()
			config.BearerToken = token
			credentials, err := region.FromConfig(config)
			require.NoError(t, err)
			return credentials
		}
		server := func(l *ledger) *regiontest.Server {
			s := regiontest.NewServer(regiontest.Options{Tokens: tokens, Authorize: l.authorize})
			t.Cleanup(s.Close)
			return s
		}
		connect := func(name region.PeerName, s *regiontest.Server, token string) *region.Conn {
			conn, err := region.NewConn(region.Peer{Name: name, Credentials: as(s, token)}, region.ConnOptions{})
			require.NoError(t, err)
			return conn
		}
		w := &world{t: t, plane: server(plane)}
		w.namespace(connect("plane", w.plane, "admin"), "kubecarrier-system")
		admin, arbiter := map[region.PeerName]*region.Conn{}, []*region.Conn{}
		for _, p := range []region.PeerName{"eu", "us"} {
			s := server(peers)
			for _, name := range []string{"regionclaims.kubecarrier.io", "serviceclusters.kubecarrier.io"} {
				crd, err := config.CRD(name)
				require.NoError(t, err)
				require.NoError(t, s.AddCRD(crd))
			}
			admin[p] = connect(p, s, "admin")
			arbiter = append(arbiter, connect(p, s, "a"))
			w.namespace(admin[p], provider)
		}
		w.api = connect("plane", w.plane, "a")
		w.startIn(w.api, region.Fixed(arbiter...), Options{})

		of := func(p region.PeerName) func(kind string, create bool) {
			return func(kind string, create bool) {
				gvr := claims
				if kind == "ServiceCluster" {
					gvr = clusters
				}
				client := admin[p].Dynamic().Resource(gvr).Namespace(provider)
				var err error
				if create {
					_, err = client.Create(t.Context(), w.object(kind, name), metav1.CreateOptions{})
				} else {
					err = client.Delete(t.Context(), name, metav1.DeleteOptions{})
				}
				require.NoError(t, err)
				passes(3 * time.Second)
			}
		}
		of("us")("ServiceCluster", true)
		of("eu")("RegionClaim", true)
		of("us")("ServiceCluster", false)
		got, err := admin["eu"].Dynamic().Resource(claims).Namespace(provider).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.EqualValues(t, "Bound", statusIn(got).Phase)
		of("eu")("RegionClaim", false)
		require.Empty(t, peers.unused())
		require.Empty(t, plane.unused())
	})
}
