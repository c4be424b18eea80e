// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// The rights in rights.Placement are enough to place a workload and one dependent of each kind, and
// the Controller uses each of them.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var crds []*apiextensionsv1.CustomResourceDefinition
		for _, name := range []string{"placementpolicies.splitter.atoll.dev", "clusterplacementpolicies.splitter.atoll.dev", "synctargets.workload.kcp.io"} {
			crd, err := config.CRD(name)
			require.NoError(t, err)
			crds = append(crds, crd)
		}
		grants := rightstest.New(rights.Placement().Rules...)
		s := regiontest.NewServer(regiontest.Options{History: 100000, CRDs: crds, Tokens: rightstest.Tokens(), Authorize: grants.Authorize})
		t.Cleanup(s.Close)
		w := &world{Server: s, t: t, api: rightstest.API(t, s, rightstest.Admin)}
		targets := w.api.Dynamic().Resource(syncerv1alpha1.GroupVersion.WithResource("synctargets"))
		_, err := targets.Create(t.Context(), unstructuredOf(t, "{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: a}, spec: {kubeconfig: none}}"), metav1.CreateOptions{})
		require.NoError(t, err)
		ready := `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`
		_, err = targets.Patch(t.Context(), "a", types.MergePatchType, []byte(ready), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		api := rightstest.API(t, s, rightstest.Program)
		c, err := placement.New(api, splitter.SyncTargets(api), placement.Options{})
		require.NoError(t, err)
		w.start(c.Start)

		w.policy("all", "{dependents: true}")
		w.wide("rest", "{}")
		w.create(deployments, deployment("web", 1, ", serviceAccountName: x, volumes: [{name: c, configMap: {name: x}}, {name: s, secret: {secretName: x}}, {name: p, persistentVolumeClaim: {claimName: x}}]"))
		kinds := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "serviceaccounts": "ServiceAccount", "persistentvolumeclaims": "PersistentVolumeClaim", "services": "Service"}
		for resource, kind := range kinds {
			spec := ""
			if resource == "services" {
				spec = ", spec: {selector: {app: web}}"
			}
			w.create(core(resource), fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: x}%s}", kind, spec))
		}
		w.routed("x", "x", "x", "x")
		w.networkPolicy("x", "")
		time.Sleep(time.Minute)
		for resource := range kinds {
			require.Equal(t, "a", w.targets(core(resource), "x"), resource)
		}
		w.everywhere(ingresses, map[string]string{"x": "a"})
		w.everywhere(networkPolicies, map[string]string{"x": "a"})
		require.Empty(t, grants.Denied(s.Requests()))
		require.Empty(t, grants.Unused())
	})
}
