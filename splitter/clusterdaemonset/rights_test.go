// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// The rights in rights.ClusterDaemonSets are enough for a Controller over SyncTargets, and the Controller uses each of
// them.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var crds []*apiextensionsv1.CustomResourceDefinition
		for _, name := range []string{"clusterdaemonsets.splitter.atoll.dev", "synctargets.workload.kcp.io"} {
			crd, err := config.CRD(name)
			require.NoError(t, err)
			crds = append(crds, crd)
		}
		grants := rightstest.New(rights.ClusterDaemonSets().Rules...)
		s := regiontest.NewServer(regiontest.Options{History: 100000, CRDs: crds, Tokens: rightstest.Tokens(), Authorize: grants.Authorize})
		t.Cleanup(s.Close)
		w := &world{Server: s, t: t, api: rightstest.API(t, s, rightstest.Admin)}
		targets := w.api.Dynamic().Resource(syncerv1alpha1.GroupVersion.WithResource("synctargets"))
		_, err := targets.Create(t.Context(), objectOf(t, "{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: a}, spec: {kubeconfig: none}}"), metav1.CreateOptions{})
		require.NoError(t, err)
		ready := `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`
		_, err = targets.Patch(t.Context(), "a", types.MergePatchType, []byte(ready), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		w.create(deployments, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: taken--a}, spec: {selector: {matchLabels: {app: mine}}, template: {metadata: {labels: {app: mine}}}}}`)
		w.create(sets, agent("agent", ""))
		w.create(sets, agent("orphaned", ""))
		w.create(sets, agent("taken", ""))
		start := func() (stop func()) {
			api := rightstest.API(t, s, rightstest.Program)
			c, err := clusterdaemonset.New(api, splitter.SyncTargets(api), clusterdaemonset.Options{})
			require.NoError(t, err)
			return w.start(c.Start)
		}
		stop := start()
		w.rest()
		require.Equal(t, []string{"agent--a@a", "orphaned--a@a", "taken--a@"}, w.copies())
		w.remove(sets, "agent")
		w.rest()
		stop()
		// A ClusterDaemonSet whose finalizer was removed leaves Deployments behind. The Controller needs the right
		// to read it live.
		w.patch(sets, "orphaned", `{"metadata":{"finalizers":null}}`)
		w.remove(sets, "orphaned")
		start()
		w.rest()
		require.Equal(t, []string{"taken--a@"}, w.copies())
		require.Empty(t, grants.Denied(s.Requests()))
		require.Empty(t, grants.Unused())
	})
}
