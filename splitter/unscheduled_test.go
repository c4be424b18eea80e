// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/splitter"
)

// If an object with a syncer's annotations becomes a parent, its shards do not get these
// annotations: no syncer would remove them there.
func TestWhatSyncersSayOfAParentStaysThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		w.patch(deployments, "web", `{"metadata":{"annotations":{"unscheduled.syncer.atoll.dev/a":"{}","synced.syncer.atoll.dev/a":"{}","theirs":"goes"}}}`)
		w.rest()
		annotations := w.get(deployments, "web--a").GetAnnotations()
		require.NotContains(t, annotations, "unscheduled.syncer.atoll.dev/a")
		require.NotContains(t, annotations, "synced.syncer.atoll.dev/a")
		require.Equal(t, "goes", annotations["theirs"])
	})
}

// While a syncer's annotation on a shard reports pods without a node, the parent's condition
// Scheduled names the cluster and the number of these pods. The Splitter ignores such an annotation
// on the shard of another cluster.
func TestUnscheduled(t *testing.T) {
	const template = "template: {metadata: {labels: {app: x}}, spec: {restartPolicy: POLICY, containers: [{name: x, image: x}]}}"
	for kind, test := range map[string]struct {
		kind splitter.Kind
		spec string
	}{
		"Deployment":  {splitter.Deployments(), "replicas: 4, selector: {matchLabels: {app: x}}, " + template},
		"StatefulSet": {splitter.StatefulSets(), "replicas: 4, serviceName: x, selector: {matchLabels: {app: x}}, " + template},
		"DaemonSet":   {splitter.DaemonSets(), "selector: {matchLabels: {app: x}}, " + template},
		"Job":         {splitter.Jobs(), "parallelism: 4, completions: 4, " + strings.Replace(template, "POLICY", "Never", 1)},
	} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				gvr := test.kind.Resource()
				w := newWorld(t, splitter.Options{Kinds: []splitter.Kind{test.kind}}, cluster("a", ""), cluster("b", ""))
				w.create(gvr, "{apiVersion: "+gvr.GroupVersion().String()+", kind: "+kind+", metadata: {name: x}, spec: {"+strings.Replace(test.spec, "POLICY", "Always", 1)+"}}")
				w.rest()
				said := func(shard, text string) {
					t.Helper()
					_, err := w.of(gvr).Patch(t.Context(), shard, types.MergePatchType, []byte(`{"metadata":{"annotations":{"unscheduled.syncer.atoll.dev/a":`+text+`}}}`), metav1.PatchOptions{FieldManager: "syncer"})
					require.NoError(t, err)
					w.rest()
				}
				require.Empty(t, w.conditionOf(gvr, "x", splitter.ConditionScheduled))
				said("x--a", `"{\"pods\":2,\"message\":\"0/5 nodes are available\"}"`)
				const want = "False Unschedulable: a: 2 pods find no node (0/5 nodes are available)"
				require.Equal(t, want, w.conditionOf(gvr, "x", splitter.ConditionScheduled))
				w.Reset()
				time.Sleep(time.Hour)
				require.Empty(t, w.writes(), "at rest")
				said("x--b", `"{\"pods\":9}"`) // the annotation of cluster a on the shard of cluster b
				require.Equal(t, want, w.conditionOf(gvr, "x", splitter.ConditionScheduled))
				said("x--a", "null")
				require.Empty(t, w.conditionOf(gvr, "x", splitter.ConditionScheduled))
				w.Reset()
				time.Sleep(time.Hour)
				require.Empty(t, w.writes(), "at rest")
			})
		})
	}
}
