// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// TestTheRightsSufficeAndAreUsed checks that no request is forbidden and that every right is used.
func TestTheRightsSufficeAndAreUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plane := rightstest.New(rights.ClaimsCentral().Rules...)
		peers := rightstest.New(rights.Claims().Rules...)
		as := func(s *regiontest.Server, token string) region.Credentials {
			config := s.Config()
			config.BearerToken = token
			credentials, err := region.FromConfig(config)
			require.NoError(t, err)
			return credentials
		}
		server := func(g *rightstest.Grants) *regiontest.Server {
			s := regiontest.NewServer(regiontest.Options{Tokens: rightstest.Tokens(), Authorize: g.Authorize})
			t.Cleanup(s.Close)
			return s
		}
		connect := func(name region.PeerName, s *regiontest.Server, token string) *region.Conn {
			conn, err := region.NewConn(region.Peer{Name: name, Credentials: as(s, token)}, region.ConnOptions{})
			require.NoError(t, err)
			return conn
		}
		w := &world{t: t, plane: server(plane)}
		w.namespace(connect("plane", w.plane, rightstest.Admin), "kubecarrier-system")
		admin, arbiter := map[region.PeerName]*region.Conn{}, []*region.Conn{}
		var servers []*regiontest.Server
		for _, p := range []region.PeerName{"eu", "us"} {
			s := server(peers)
			servers = append(servers, s)
			for _, name := range []string{"regionclaims.kubecarrier.io", "serviceclusters.kubecarrier.io"} {
				crd, err := config.CRD(name)
				require.NoError(t, err)
				require.NoError(t, s.AddCRD(crd))
			}
			admin[p] = connect(p, s, rightstest.Admin)
			arbiter = append(arbiter, connect(p, s, rightstest.Program))
			w.namespace(admin[p], provider)
		}
		w.api = connect("plane", w.plane, rightstest.Program)
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
		for _, s := range servers {
			require.Empty(t, peers.Denied(s.Requests()))
		}
		require.Empty(t, plane.Denied(w.plane.Requests()))
		require.Empty(t, slices.Concat(peers.Unused(), plane.Unused()))
	})
}
