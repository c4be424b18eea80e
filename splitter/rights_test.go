// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
)

// The rights in rights.Split are enough for a Splitter over SyncTargets, and the Splitter uses each
// of them.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		crd, err := config.CRD("synctargets.workload.kcp.io")
		require.NoError(t, err)
		grants := rightstest.New(rights.Split(deployments.GroupResource(), budgets.GroupResource(), autoscalers.GroupResource()).Rules...)
		w := &world{t: t, Server: regiontest.NewServer(regiontest.Options{
			History: 100000, CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}, Tokens: rightstest.Tokens(), Authorize: grants.Authorize,
		})}
		t.Cleanup(w.Close)
		w.api = rightstest.API(t, w.Server, rightstest.Admin)
		targets := w.api.Dynamic().Resource(schema.GroupVersionResource{Group: "workload.kcp.io", Version: "v1alpha1", Resource: "synctargets"})
		for _, name := range []string{"a", "b"} {
			obj, err := targets.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": name},
			}}, metav1.CreateOptions{})
			require.NoError(t, err)
			obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Syncing", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
			}}}
			_, err = targets.UpdateStatus(t.Context(), obj, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		api := rightstest.API(t, w.Server, rightstest.Program)
		start := func() {
			s, err := splitter.New(api, splitter.SyncTargets(api), splitter.Options{Followers: []splitter.Follower{splitter.DisruptionBudgets(), splitter.Autoscalers()}})
			require.NoError(t, err)
			w.start(s)
		}
		start()
		w.create(deployments, deployment("one", 4))
		w.create(deployments, deployment("two", 4))
		w.create(budgets, budget("web", selectsWeb+"maxUnavailable: 1"))
		w.create(autoscalers, strings.ReplaceAll(autoscaler("web", 2, 6), "Deployment, name: web", "Deployment, name: two"))
		w.rest()
		require.Len(t, w.list(deployments), 6)
		require.Len(t, w.list(budgets), 3)
		require.Len(t, w.list(autoscalers), 3)
		client := w.api.Dynamic().Resource(deployments).Namespace("default")
		require.NoError(t, client.Delete(t.Context(), "one", metav1.DeleteOptions{}))
		w.rest()
		// A parent whose finalizer was removed leaves shards behind. The Splitter needs the right
		// to read the parent live.
		w.stop()
		for _, parent := range []struct {
			gvr  schema.GroupVersionResource
			name string
		}{{deployments, "two"}, {budgets, "web"}, {autoscalers, "web"}} {
			w.patch(parent.gvr, parent.name, `{"metadata":{"finalizers":null}}`)
			require.NoError(t, w.of(parent.gvr).Delete(t.Context(), parent.name, metav1.DeleteOptions{}))
		}
		start()
		w.rest()
		require.Empty(t, w.list(deployments))
		require.Empty(t, w.list(budgets))
		require.Empty(t, w.list(autoscalers))
		require.Empty(t, grants.Denied(w.Requests()))
		require.Empty(t, grants.Unused())
	})
}
