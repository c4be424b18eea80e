// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// few are the types in the tests of rights: one without a status and one with a status.
var few = []schema.GroupResource{configMaps.GroupResource(), deployments.GroupResource()}

const someDeployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: a}}, template: {metadata: {labels: {a: a}}, spec: {containers: [{name: c, image: i}]}}}}"

// guarded returns a side that allows the program only the rights in grants.
func guarded(t *testing.T, name string, opts regiontest.Options, grants *rightstest.Grants) *side {
	t.Helper()
	opts.Name, opts.History, opts.Tokens, opts.Authorize = name, 100000, rightstest.Tokens(), grants.Authorize
	s := &side{Server: regiontest.NewServer(opts), t: t}
	t.Cleanup(s.Close)
	s.client, s.api = rightstest.API(t, s.Server, rightstest.Admin).Dynamic(), rightstest.API(t, s.Server, rightstest.Program)
	return s
}

// granted returns the rights in the roles that package rights defines for a Controller.
func granted(t *testing.T, s rights.Syncing) *rightstest.Grants {
	t.Helper()
	cluster, namespaced, ok := rights.Sync("targets", s)
	require.True(t, ok)
	return rightstest.Of(cluster, namespaced)
}

// In each mode, the roles that package rights defines are sufficient for a Controller. The Controller uses all its
// rights on SyncTargets, Secrets, Namespaces and ClusterRoles. TestRightsOfASyncer of package syncer covers the rights
// of a Syncer.
func TestRightsOfTargets(t *testing.T) {
	for _, mode := range []targets.Mode{targets.Push, targets.Pull, targets.None} {
		t.Run(string(mode), func(t *testing.T) {
			upGrants := granted(t, rights.Syncing{Mode: mode, Types: few, Namespace: "default"})
			downGrants := granted(t, rights.Syncing{Mode: mode, Types: few, Downstream: true})
			up, down := guarded(t, "up", withTargets(t), upGrants), guarded(t, "down", regiontest.Options{}, downGrants)
			f := &fleet{t: t, up: up, down: down}
			f.start(t, func(o *targets.Options) {
				pulling(o)
				o.Mode = func(*v1alpha1.SyncTarget) targets.Mode { return mode }
				install := o.Install
				o.Install = func(ctx context.Context, target *v1alpha1.SyncTarget) (targets.Install, error) {
					in, err := install(ctx, target)
					in.Types = few
					return in, err
				}
				o.Configure = func(_ *v1alpha1.SyncTarget, opts *syncer.Options) {
					opts.Discovery = 100 * time.Millisecond
					opts.Types = func(gr schema.GroupResource) bool { return slices.Contains(few, gr) }
				}
				if mode == targets.Pull {
					o.Configure = nil // the types are those of the installation
				}
			})
			f.secret(withToken(f.kubeconfig(), rightstest.Program))
			f.register(target, map[string]any{"kubeconfigSecret": map[string]any{"name": "k", "namespace": "default"}})
			f.up.create(configMaps, a)
			f.up.create(deployments, someDeployment)
			switch mode {
			case targets.Push:
				f.eventually("the downstream objects", func() bool { return f.down.get(configMaps, "a") != nil && f.down.get(deployments, "a") != nil })
				f.says("Ready True Syncing")
			case targets.Pull:
				f.says("Installed False Progressing")
			case targets.None:
				f.says("Ready Unknown Pending")
			}
			for _, gvr := range []schema.GroupVersionResource{configMaps, deployments} {
				f.up.patch(gvr, "a", `{"metadata":{"finalizers":["syncer.atoll.dev/`+target+`"]}}`) // as a Syncer elsewhere would leave it
			}
			f.deleteTarget()
			f.targetIsGone()
			f.stop()
			require.Empty(t, upGrants.Denied(up.Requests()))
			require.Empty(t, downGrants.Denied(down.Requests()))
			unused := upGrants.Unused()
			if mode == targets.Pull {
				unused = append(unused, downGrants.Unused()...)
			}
			for _, name := range unused {
				require.NotContains(t, name, "synctargets")
				require.NotContains(t, name, "secrets.")
				require.NotContains(t, name, "namespaces")
				require.NotContains(t, name, "clusterrole")
			}
		})
	}
}

// withToken returns the kubeconfig with a token instead of the administrator's certificate.
func withToken(kubeconfig, token string) string {
	text := regexp.MustCompile("client-certificate-data: .*").ReplaceAllString(kubeconfig, "token: "+token)
	return regexp.MustCompile(`\n *client-key-data: .*`).ReplaceAllString(text, "")
}
