// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/shard"
)

var _ Shards = (*shard.Members)(nil)

// grants is an API server's authorizer: it allows what rules say, and notes what was used.
type grants struct {
	rules []rbacv1.PolicyRule
	only  map[string]string // by resource, the namespace in which alone it is granted

	mu     sync.Mutex
	used   map[string]bool
	denied []string
}

func (g *grants) authorize(r regiontest.Request) error {
	if r.Resource == "" || slices.Contains(r.User.Groups, "system:masters") {
		return nil // what everyone may read; the test itself
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, rule := range g.rules {
		if rule.APIGroups[0] == r.Group && rule.Resources[0] == resource && slices.Contains(rule.Verbs, r.Verb) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name)) &&
			(g.only[resource] == "" || g.only[resource] == r.Namespace) {
			g.used[r.Verb+" "+resource] = true
			return nil
		}
	}
	g.denied = append(g.denied, r.Verb+" "+resource)
	return fmt.Errorf("no role allows %s of %s", r.Verb, resource)
}

func (g *grants) all() map[string]bool {
	all := map[string]bool{}
	for _, rule := range g.rules {
		for _, verb := range rule.Verbs {
			all[verb+" "+rule.Resources[0]] = true
		}
	}
	return all
}

// Everything works with the roles that are printed, and each right in them is used.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := map[string]regiontest.User{"admin": {Name: "admin", Groups: []string{"system:masters"}}, "atoll": {Name: "atoll"}}
		inPlane := &grants{
			rules: slices.Concat(rights.PeersCentral().Rules, rights.Kubeconfigs(Namespace).Rules, rights.Peers().Rules),
			only:  map[string]string{"secrets": Namespace}, used: map[string]bool{},
		}
		inPeer := &grants{rules: rights.Peers().Rules, used: map[string]bool{}}
		w := newWorld(t)
		w.token = "admin"
		w.plane = regiontest.NewServer(regiontest.Options{
			Name: "plane", CRDs: crds(t, peerCRD, carrierCRD, claimCRD), Tokens: tokens, Authorize: inPlane.authorize,
		})
		t.Cleanup(w.plane.Close)
		w.create(w.plane, namespaceResource, "", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": Namespace}})
		eu := w.add("eu", regiontest.Options{Name: "eu", CRDs: crds(t, carrierCRD, claimCRD), Tokens: tokens, Authorize: inPeer.authorize})
		w.carrier(w.plane, "kubecarrier", true, nil)
		w.secret("eu-kubeconfig", "eu atoll")
		w.peer("eu", "eu-kubeconfig")
		w.claim(eu, "loodse", "eu-west-1", "Bound")

		w.token = "atoll"
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
		w.token = "admin"
		pass(10 * time.Second)
		w.secret("eu-kubeconfig", "eu admin")
		pass(time.Second)
		w.secret("eu-kubeconfig", "eu atoll")
		pass(time.Minute)
		require.Equal(t, []string{"eu-west-1.loodse"}, w.regions("eu"))
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.Equal(t, "True Reachable", w.ready(masterv1alpha1.LocalPeer))
		require.Equal(t, "Ready True Complete", w.installation("kubecarrier"))
		for _, g := range []*grants{inPlane, inPeer} {
			g.mu.Lock()
			require.Empty(t, g.denied)
			require.Equal(t, g.all(), g.used)
			g.mu.Unlock()
		}
	})
}
