// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

const autoscaler = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web},
	spec: {minReplicas: 1, maxReplicas: 10, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`

func (p *pair) replicas(name string) any {
	return field(p.down.get(deployments, name), "spec", "replicas")
}

// A HorizontalPodAutoscaler is synced with the Deployment that it targets, without a Rule. The replicas that it sets
// downstream stay: across changes upstream, restarts, and while the autoscalers cannot be listed. Other Deployments
// have the replicas of the upstream.
func TestAutoscaledReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(deployments, deployment)
		p.up.create(deployments, strings.Replace(deployment, "name: web", "name: other", 1))
		p.up.create(autoscalers, autoscaler)
		p.rest()
		require.EqualValues(t, 2, p.replicas("web"))
		p.down.patch(deployments, "web", `{"spec":{"replicas":7}}`)
		p.down.patch(deployments, "other", `{"spec":{"replicas":7}}`)
		p.rest()
		require.EqualValues(t, 7, p.replicas("web"))
		require.EqualValues(t, 2, p.replicas("other"))

		p.up.patch(deployments, "web", `{"spec":{"replicas":4,"paused":true}}`)
		p.rest()
		require.EqualValues(t, 7, p.replicas("web"))
		require.Equal(t, true, field(p.down.get(deployments, "web"), "spec", "paused"))

		p.stop()
		p.reset()
		for _, verb := range []string{"list", "watch"} {
			p.up.Inject(regiontest.Fault{Verb: verb, Resource: autoscalers.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
		}
		p.start(syncer.Options{})
		require.Empty(t, p.down.writes(), "autoscalers are not known")
		p.reset()
		time.Sleep(time.Minute)
		p.rest()
		require.Empty(t, p.down.writes(), "autoscalers are known")
		require.EqualValues(t, 7, p.replicas("web"))

		p.up.patch(autoscalers, "web", `{"spec":{"scaleTargetRef":{"name":"other"}}}`)
		p.rest()
		require.EqualValues(t, 4, p.replicas("web"))
		p.down.patch(deployments, "other", `{"spec":{"replicas":7}}`)
		p.rest()
		require.EqualValues(t, 7, p.replicas("other"))

		p.up.delete(autoscalers, "web")
		p.rest()
		require.EqualValues(t, 2, p.replicas("other"))
		require.Empty(t, p.problems())
	})
}

// A Rule for the replicas replaces the built-in one.
func TestAutoscaledReplicasByRule(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Rules: []syncer.Rule{
			{Type: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Path: "spec.replicas", Owner: syncer.Upstream},
		}})
		p.up.create(deployments, deployment)
		p.up.create(autoscalers, autoscaler)
		p.rest()
		p.down.patch(deployments, "web", `{"spec":{"replicas":7}}`)
		p.rest()
		require.EqualValues(t, 2, p.replicas("web"))
	})
}
