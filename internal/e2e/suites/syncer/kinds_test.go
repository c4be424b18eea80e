// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/syncer"
)

// kind is a type with a test object and a patch of the object. It has the expected fields
// downstream and upstream, before and after the patch.
type kind struct {
	gvr      schema.GroupVersionResource
	manifest string
	report   string // status of the downstream object that an absent controller would write
	whole    bool   // status is not a subresource
	down, up map[string]string
	patch    string
	changed  map[string]string // expected downstream after the patch
	settled  map[string]string // expected upstream after the patch
}

func gvr(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

var (
	deployments  = gvr("apps", "v1", "deployments")
	statefulSets = gvr("apps", "v1", "statefulsets")
	jobs         = gvr("batch", "v1", "jobs")
	configMaps   = gvr("", "v1", "configmaps")
	services     = gvr("", "v1", "services")
	claims       = gvr("", "v1", "persistentvolumeclaims")
	roles        = gvr("rbac.authorization.k8s.io", "v1", "roles")
	bindings     = gvr("rbac.authorization.k8s.io", "v1", "rolebindings")
	widgets      = gvr("example.org", "v1", "widgets")
	gadgets      = gvr("example.org", "v1", "gadgets")
)

const pod = "{metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 10m}}}]}}"

var kinds = []kind{
	{
		gvr: deployments, manifest: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2, selector: {matchLabels: {app: a}}, template: " + pod + "}}",
		down: map[string]string{"spec.replicas": "2"}, up: map[string]string{"status.readyReplicas": "2", "status.observedGeneration": "1"},
		patch: `{"spec":{"replicas":3}}`, changed: map[string]string{"spec.replicas": "3"}, settled: map[string]string{"status.readyReplicas": "3", "status.observedGeneration": "2"},
	},
	{
		gvr: statefulSets, manifest: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 1, serviceName: a, selector: {matchLabels: {app: s}}, template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: i}]}}, volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}",
		down: map[string]string{"spec.replicas": "1"}, up: map[string]string{"status.replicas": "1", "status.observedGeneration": "1"},
		patch: `{"spec":{"replicas":2,"podManagementPolicy":null}}`, changed: map[string]string{"spec.replicas": "2"}, settled: map[string]string{"status.observedGeneration": "2"},
	},
	{
		gvr: gvr("apps", "v1", "daemonsets"), manifest: "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: i}]}}}}",
		up: map[string]string{"status.numberReady": "1"}, patch: `{"spec":{"minReadySeconds":1}}`, changed: map[string]string{"spec.minReadySeconds": "1"}, settled: map[string]string{"status.observedGeneration": "2"},
	},
	{
		gvr: jobs, manifest: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}",
		down: map[string]string{"spec.suspend": "true"}, patch: `{"spec":{"suspend":false}}`, changed: map[string]string{"spec.suspend": "false"}, settled: map[string]string{"status.succeeded": "1"},
	},
	{
		gvr: gvr("batch", "v1", "cronjobs"), manifest: `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}`,
		report: `{"status":{"lastScheduleTime":"2026-01-01T00:00:00Z"}}`, // makes the CronJob late, so that it runs at once
		down:   map[string]string{"spec.schedule": "* * * * *"}, up: map[string]string{"status.lastSuccessfulTime": "*"},
		patch: `{"spec":{"suspend":true}}`, changed: map[string]string{"spec.suspend": "true"}, settled: map[string]string{"status.active": ""},
	},
	{
		gvr: services, manifest: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, selector: {app: a}, ports: [{port: 80}]}}",
		report: `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1","ipMode":"VIP"}]}}}`,
		down:   map[string]string{"spec.type": "LoadBalancer"}, up: map[string]string{"status.loadBalancer.ingress": "[map[ip:192.0.2.1 ipMode:VIP]]"}, patch: `{"spec":{"selector":{"app":"b"}}}`, changed: map[string]string{"spec.selector.app": "b"},
	},
	{
		gvr: gvr("networking.k8s.io", "v1", "ingresses"), manifest: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}",
		report: `{"status":{"loadBalancer":{"ingress":[{"hostname":"a.example.org"}]}}}`,
		down:   map[string]string{"spec.defaultBackend.service.name": "a"}, up: map[string]string{"status.loadBalancer.ingress": "[map[hostname:a.example.org]]"}, patch: `{"spec":{"ingressClassName":"x"}}`, changed: map[string]string{"spec.ingressClassName": "x"},
	},
	{gvr: configMaps, manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}", down: map[string]string{"data.k": "v"}, patch: `{"data":{"k":null,"l":"w"}}`, changed: map[string]string{"data.k": "", "data.l": "w"}},
	{gvr: gvr("", "v1", "secrets"), manifest: "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}", down: map[string]string{"data.k": "dg=="}, patch: `{"data":{"k":"dw=="}}`, changed: map[string]string{"data.k": "dw=="}},
	{gvr: gvr("", "v1", "serviceaccounts"), manifest: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: [{name: pull}]}", patch: `{"automountServiceAccountToken":false}`, changed: map[string]string{"automountServiceAccountToken": "false"}},
	{
		gvr: claims, manifest: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
		down: map[string]string{"spec.volumeName": "*"}, up: map[string]string{"status.phase": "Bound", "status.capacity.storage": "1Gi", "spec.volumeName": ""}, patch: `{"metadata":{"labels":{"tier":"x"}}}`, changed: map[string]string{"metadata.labels.tier": "x"},
	},
	{
		gvr: gvr("autoscaling", "v2", "horizontalpodautoscalers"), manifest: "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {minReplicas: 1, maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: none}}}",
		down: map[string]string{"spec.maxReplicas": "4"}, up: map[string]string{"status.conditions": "*"}, patch: `{"spec":{"maxReplicas":5}}`, changed: map[string]string{"spec.maxReplicas": "5"},
	},
	{
		gvr: gvr("policy", "v1", "poddisruptionbudgets"), manifest: "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: 1, selector: {matchLabels: {app: a}}}}",
		up: map[string]string{"status.observedGeneration": "1", "status.desiredHealthy": "1"}, patch: `{"spec":{"minAvailable":2}}`, changed: map[string]string{"spec.minAvailable": "2"}, settled: map[string]string{"status.observedGeneration": "2", "status.desiredHealthy": "2"},
	},
	{
		gvr: gvr("networking.k8s.io", "v1", "networkpolicies"), manifest: "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {}, policyTypes: [Ingress]}}",
		patch: `{"spec":{"podSelector":{"matchLabels":{"app":"a"}}}}`, changed: map[string]string{"spec.podSelector.matchLabels.app": "a"},
	},
	{
		gvr: widgets, manifest: "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}",
		report: `{"status":{"observedGeneration":1,"ready":true}}`, down: map[string]string{"spec.size": "1"}, up: map[string]string{"status.ready": "true", "spec.size": "1"},
		patch: `{"spec":{"size":2}}`, changed: map[string]string{"spec.size": "2"},
	},
	{
		gvr: gadgets, manifest: "{apiVersion: example.org/v1, kind: Gadget, metadata: {name: a}, spec: {size: 1}}",
		report: `{"status":{"observedGeneration":1,"ready":true}}`, whole: true, down: map[string]string{"spec.size": "1"}, up: map[string]string{"status.ready": "true", "spec.size": "1"},
		patch: `{"spec":{"size":2}}`, changed: map[string]string{"spec.size": "2"},
	},
}

// definitions has two CRDs: a type with a status subresource and a type without.
const definitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}]
`

// An object of each of the kinds is synced and changed, reports its status, and is deleted. At
// rest, the syncer writes no object, also after a restart.
func TestKinds(t *testing.T) {
	w := newWorld(t, syncer.Options{DeleteCap: syncer.DeleteCap{Objects: -1}})
	planetest.Apply(t, w.up.plane, definitions)
	planetest.Apply(t, w.down.plane, definitions)
	for _, k := range kinds {
		w.up.create(k.gvr, k.manifest)
	}
	w.volume()
	for _, k := range kinds {
		w.down.has(k.gvr, "a", k.down)
		switch {
		case k.report == "":
		case k.whole:
			w.down.patch(k.gvr, "a", k.report)
		default:
			w.down.patch(k.gvr, "a", k.report, "status")
		}
	}
	for _, k := range kinds {
		w.up.has(k.gvr, "a", k.up)
	}
	for _, k := range kinds {
		w.up.patch(k.gvr, "a", k.patch)
	}
	for _, k := range kinds {
		w.down.has(k.gvr, "a", k.changed)
		w.up.has(k.gvr, "a", k.settled)
	}
	service, err := w.up.get(t.Context(), services, "a")
	require.NoError(t, err)
	copied, err := w.down.get(t.Context(), services, "a")
	require.NoError(t, err)
	require.NotEqual(t, service.Object["spec"].(map[string]any)["clusterIP"], copied.Object["spec"].(map[string]any)["clusterIP"])
	for _, s := range w.Status().Types {
		require.Empty(t, s.Problems, s.Resource)
	}

	before := w.restFor(t, still(t), kinds)
	w.stop()
	w.start(t, syncer.Options{DeleteCap: syncer.DeleteCap{Objects: -1}})
	w.reads(t, kinds)
	require.Equal(t, before, w.rest(t, kinds))

	for _, k := range kinds {
		w.up.delete(k.gvr, "a")
	}
	for _, k := range kinds {
		w.down.lacks(k.gvr, "a")
		if k.gvr != claims {
			w.up.lacks(k.gvr, "a")
			continue
		}
		// The upstream's admission adds this finalizer, and no controller removes it there.
		w.up.has(claims, "a", map[string]string{"metadata.finalizers": "[kubernetes.io/pvc-protection]"})
	}
}

// volume creates a PersistentVolume downstream for the claim.
func (w *world) volume() {
	planetest.Apply(w.down.t, w.down.plane, fmt.Sprintf("{apiVersion: v1, kind: PersistentVolume, metadata: {name: volume-%s}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], "+
		"persistentVolumeReclaimPolicy: Retain, hostPath: {path: /tmp/none}, claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: %[1]s, name: a}}}", w.down.namespace))
}

// A Job that completed and was deleted downstream does not run again.
func TestJobFinishes(t *testing.T) {
	w := newWorld(t, syncer.Options{})
	w.up.create(jobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}")
	w.up.has(jobs, "a", map[string]string{"status.succeeded": "1"})
	planetest.Eventually(t, long, "the Job is complete upstream", func(ctx context.Context) error {
		job, err := w.up.get(ctx, jobs, "a")
		if err != nil {
			return err
		}
		if _, ok := job.Object["status"].(map[string]any)["completionTime"]; !ok {
			return fmt.Errorf("status %v", job.Object["status"])
		}
		return nil
	})
	w.down.delete(jobs, "a")
	w.down.lacks(jobs, "a")
	w.rest(t, nil)
	w.down.lacks(jobs, "a")
	w.up.delete(jobs, "a")
	w.up.lacks(jobs, "a")
}

// RBAC objects are synced only with their permit.
func TestRBAC(t *testing.T) {
	role := "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"
	binding := "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}, subjects: [{kind: User, name: alice, apiGroup: rbac.authorization.k8s.io}]}"
	w := newWorld(t, syncer.Options{})
	up, down := w.up.global(), w.down.global()
	everywhere := "role-" + w.up.namespace
	globalRole := gvr("rbac.authorization.k8s.io", "v1", "clusterroles")
	up.create(globalRole, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+everywhere+"}, rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]}")
	w.up.create(roles, role)
	w.up.create(bindings, binding)
	w.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	w.down.has(configMaps, "a", nil)
	w.rest(t, nil)
	w.down.lacks(roles, "a")
	w.down.lacks(bindings, "a")
	down.lacks(globalRole, everywhere)
	for _, s := range w.Status().Types {
		if s.Resource == roles || s.Resource == bindings || s.Resource == globalRole {
			require.Equal(t, syncer.ReasonNotPermitted, s.Reason)
			require.Len(t, s.Problems, 1)
		}
	}
	w.stop()
	w.start(t, syncer.Options{Permit: []syncer.Power{syncer.PermitRBAC}})
	w.down.has(roles, "a", nil)
	w.down.has(bindings, "a", map[string]string{"roleRef.name": "a"})
	down.has(globalRole, everywhere, map[string]string{"rules": "[map[apiGroups:[] resources:[nodes] verbs:[get]]]"})
	up.delete(globalRole, everywhere)
	w.up.delete(roles, "a")
	w.up.delete(bindings, "a")
	w.up.lacks(roles, "a")
	w.down.lacks(bindings, "a")
	up.lacks(globalRole, everywhere)
	down.lacks(globalRole, everywhere)
}
