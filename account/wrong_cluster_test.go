// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// One kubeconfig of a Replicator leads to another ring's peer of the same name. The Replicator
// writes nothing there, and reports that the peer is the wrong cluster, not that its object is
// missing. After a deletion the central Account stays, because the right cluster has not confirmed
// the removal.
func TestAReplicatorBesideAWrongCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}))
		w.awaitReady("acme")
		w.stop()
		abroad, _ := newRing(t)

		wrong := peerNames[len(peerNames)-1]
		var conns []*region.Conn
		for _, p := range peerNames {
			at := w.ring.Server(p)
			if p == wrong {
				at = abroad.Server(p)
			}
			creds, err := region.FromConfig(at.Config())
			require.NoError(t, err)
			conn, err := region.NewConn(region.Peer{Name: p, Credentials: creds}, region.ConnOptions{})
			require.NoError(t, err)
			defer conn.Close()
			conns = append(conns, conn)
		}
		misled := region.Fixed(conns...)
		r, err := NewReplicator(w.api, misled, coordinate(t, misled), Options{RemovalCap: noCap})
		require.NoError(t, err)
		abroad.Server(wrong).Reset()
		stop := run(t, r.Start)
		eventually(t, func() bool {
			p, ok := r.Presence(types.NamespacedName{Name: "acme"})
			for _, e := range p.Exceptions {
				if e.Peer == wrong && ok && e.Reason == v1alpha1.AccountReasonNoAnswer &&
					strings.Contains(e.Message, "the cluster behind peer "+string(wrong)+" belongs to ring") {
					return true
				}
			}
			return false
		}, "the peer is reported")
		w.delete("acme")
		time.Sleep(time.Minute)
		require.NotNil(t, accountIn(t, w.api, "acme"), "it stands in %s", wrong)
		require.NotNil(t, accountIn(t, w.conn(wrong), "acme"))
		for _, request := range abroad.Server(wrong).Requests() {
			require.Equal(t, http.MethodGet, request.Method, "%s", request.Path)
		}
		stop()
		right, err := NewReplicator(w.api, w.ring, w.c, Options{RemovalCap: noCap})
		require.NoError(t, err)
		run(t, right.Start)
		w.awaitGone("acme")
	})
}
