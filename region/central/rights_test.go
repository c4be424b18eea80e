// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/shard"
)

var _ Shards = (*shard.Members)(nil)

// The roles that "atollctl rbac" prints suffice for the program, and each of their rights is used.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inPlane := rightstest.New(rights.PeersCentral().Rules...).In("", rights.Peers().Rules...).In(Namespace, rights.Kubeconfigs(Namespace).Rules...)
		inPeer := rightstest.New(rights.Peers().Rules...)
		w := newWorld(t)
		w.token = rightstest.Admin
		w.plane = regiontest.NewServer(regiontest.Options{
			Name: "plane", Definitions: definitions(t, peerCRD, carrierCRD, claimCRD), Tokens: rightstest.Tokens(), Authorize: inPlane.Authorize,
		})
		t.Cleanup(w.plane.Close)
		w.create(w.plane, namespaceResource, "", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": Namespace}})
		eu := w.add("eu", regiontest.Options{Name: "eu", Definitions: definitions(t, carrierCRD, claimCRD), Tokens: rightstest.Tokens(), Authorize: inPeer.Authorize})
		w.carrier(w.plane, "kubecarrier", true, nil)
		w.secret("eu-kubeconfig", "eu "+rightstest.Program)
		w.peer("eu", "eu-kubeconfig")
		w.claim(eu, "loodse", "eu-west-1", "Bound")

		w.token = rightstest.Program
		config := w.plane.Config()
		config.BearerToken = w.token
		local, err := region.FromConfig(config)
		require.NoError(t, err)
		program := w.program(PeersOptions{})
		program.source.opts.Local = local
		w.startMaster(func(ctx context.Context) error {
			program.run(ctx)
			return nil
		}, MasterOptions{})
		w.token = rightstest.Admin
		pass(10 * time.Second)
		w.secret("eu-kubeconfig", "eu "+rightstest.Admin)
		pass(time.Second)
		w.secret("eu-kubeconfig", "eu "+rightstest.Program)
		pass(time.Minute)
		require.Equal(t, []string{"eu-west-1.loodse"}, w.regions("eu"))
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.Equal(t, "True Reachable", w.ready(masterv1alpha1.LocalPeer))
		require.Equal(t, "Ready True Complete", w.installation("kubecarrier"))
		for s, g := range map[*regiontest.Server]*rightstest.Grants{w.plane: inPlane, eu: inPeer} {
			require.Empty(t, g.Denied(s.Requests()))
			require.Empty(t, g.Unused())
		}
	})
}
