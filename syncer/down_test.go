// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

func TestWhatOneSideNeedsStaysThere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {workloads.kcp.io/cluster: my-cluster, tier: front, app.kubernetes.io/instance: argo-app}
  annotations:
    note: kept
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    argocd.argoproj.io/tracking-id: x
    splitter.atoll.dev/parent: web
  finalizers: [example.org/theirs]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: parent, uid: 8d3c6a5e-0000-0000-0000-000000000000}]
data: {k: v}
`)
		p.rest()
		up, down := p.up.get(configMaps, "a"), p.down.get(configMaps, "a")
		require.Equal(t, map[string]any{"k": "v"}, field(down, "data"))
		require.Empty(t, down.GetOwnerReferences())
		require.Empty(t, down.GetFinalizers())
		require.NotEqual(t, up.GetUID(), down.GetUID())
		owner := p.Status().Owner
		require.Equal(t, map[string]string{"tier": "front", "syncer.atoll.dev/owner": owner}, down.GetLabels())
		annotations := down.GetAnnotations()
		require.Len(t, annotations["syncer.atoll.dev/applied"], 26)
		delete(annotations, "syncer.atoll.dev/applied")
		require.Equal(t, map[string]string{"note": "kept", "syncer.atoll.dev/origin": "default/a", "syncer.atoll.dev/uid": string(up.GetUID())}, annotations)
		require.Len(t, down.GetManagedFields(), 1)
		require.EqualValues(t, "Apply", down.GetManagedFields()[0].Operation)
	})
}

func TestOtherTargetsAreNotOurs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {workloads.kcp.io/cluster: another}}}")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {none: of-ours}}}")
		p.rest()
		require.Nil(t, p.down.get(configMaps, "a"))
		require.Nil(t, p.down.get(configMaps, "b"))
		require.Empty(t, p.up.get(configMaps, "a").GetFinalizers())
	})
}

func TestNamespacesAreMadeAndMapped(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Namespaces: syncer.PrefixNamespaces("acme-")})
		p.up.create(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {workloads.kcp.io/cluster: my-cluster}}}")
		p.rest()
		require.NotNil(t, p.down.get(configMaps, "a", "acme-shop"))
		require.NotEmpty(t, p.down.get(namespaces, "acme-shop").GetLabels()["syncer.atoll.dev/owner"])
		require.NoError(t, p.up.of(configMaps, "shop").Delete(t.Context(), "a", metav1.DeleteOptions{}))
		p.rest()
		require.Nil(t, p.down.get(configMaps, "a", "acme-shop"))
		require.NotNil(t, p.down.get(namespaces, "acme-shop"), "deleting the namespace would delete objects of others")
	})
}

// A terminating namespace rejects new objects. Once it is gone, the syncer creates it again, with its objects.
func TestTerminatingNamespace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{KeepNamespaceContent: true})}
		p.start(syncer.Options{})
		p.down.create(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {theirs: 'yes'}}}")
		require.NoError(t, p.down.client.Resource(namespaces).Delete(t.Context(), "shop", metav1.DeleteOptions{}))
		p.up.create(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}")
		p.rest()
		require.Equal(t, []string{"configmaps shop/a Forbidden"}, p.problems())

		ns := p.down.get(namespaces, "shop")
		require.NoError(t, unstructured.SetNestedSlice(ns.Object, nil, "spec", "finalizers"))
		_, err := p.down.client.Resource(namespaces).Update(t.Context(), ns, metav1.UpdateOptions{}, "finalize")
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.NotNil(t, p.down.get(configMaps, "a", "shop"))
		require.Empty(t, p.problems())
	})
}

func TestClusterScopedObjects(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Namespaces: syncer.PrefixNamespaces("acme-"), Permit: []syncer.Power{syncer.PermitPersistentVolumes}})
		p.up.create(volumes, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {capacity: {storage: 1Gi}, claimRef: {name: c, namespace: default, uid: 8d3c6a5e-0000-0000-0000-000000000000}}}")
		p.rest()
		require.Equal(t, map[string]any{"name": "c", "namespace": "default"}, field(p.down.get(volumes, "v"), "spec", "claimRef"))
		p.up.delete(volumes, "v")
		p.rest()
		require.Nil(t, p.down.get(volumes, "v"))
		require.Nil(t, p.up.get(volumes, "v"))
	})
}

func TestForeignObjectsStayAsTheyAre(t *testing.T) {
	const ours = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: ours}}"
	for name, test := range map[string]struct {
		adopt  syncer.AdoptPolicy
		theirs string
		taken  bool
	}{
		"never":                {syncer.AdoptNever, "{k: ours}", false},
		"equal, and it is":     {syncer.AdoptEqual, "{k: ours}", true},
		"equal, and it is not": {syncer.AdoptEqual, "{k: theirs}", false},
		"equal, and has more":  {syncer.AdoptEqual, "{k: ours, more: theirs}", true},
		"always":               {syncer.AdoptAlways, "{k: theirs, more: theirs}", true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{Adopt: test.adopt})
				before := p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: 'yes'}}, data: "+test.theirs+"}")
				p.up.create(configMaps, ours)
				p.rest()
				after := p.down.get(configMaps, "a")
				require.Equal(t, before.GetUID(), after.GetUID())
				if test.taken {
					require.Equal(t, "ours", field(after, "data", "k"))
					require.Equal(t, "yes", after.GetLabels()["theirs"])
					require.Empty(t, p.problems())
				} else {
					require.Equal(t, before.GetResourceVersion(), after.GetResourceVersion())
					require.Equal(t, []string{"configmaps default/a Foreign"}, p.problems())
				}

				p.up.delete(configMaps, "a")
				p.rest()
				require.Nil(t, p.up.get(configMaps, "a"))
				require.Equal(t, test.taken, p.down.get(configMaps, "a") == nil)
				require.Empty(t, p.problems())
			})
		})
	}
}

// Once another client's object is deleted, ours is created in its place, although no cache shows the deletion.
func TestForeignObjectLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: 'yes'}}}")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: ours}}")
		p.rest()
		p.down.delete(configMaps, "a")
		time.Sleep(2 * time.Minute)
		require.Equal(t, "ours", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Empty(t, p.problems())
	})
}

// Two upstreams with targets of the same name have different owner labels. So the syncer of one upstream does not take
// the downstream objects of the other upstream for its own.
func TestCopiesOfAnotherUpstreamAreForeign(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one := newPair(t, syncer.Options{})
		one.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: one}}")
		one.rest()
		two := &pair{t: t, up: newSide(t, "two", regiontest.Options{}), down: one.down}
		two.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: two}}")
		two.start(syncer.Options{})
		two.rest()
		require.Equal(t, "one", field(one.down.get(configMaps, "a"), "data", "k"))
		require.Equal(t, []string{"configmaps default/a Foreign"}, two.problems())
		require.Empty(t, one.problems())
	})
}

// With Options.Upstream, an upstream that moves to another API server keeps its identity, and therefore its downstream
// objects.
func TestIdentityOfTheUpstream(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Upstream: "acme"})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}")
		p.rest()
		before, made := p.Status().Owner, p.down.get(configMaps, "a").GetUID()
		p.stop()
		p.up = newSide(t, "moved", regiontest.Options{})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: w}}")
		p.start(syncer.Options{Upstream: "acme"})
		p.rest()
		require.Equal(t, before, p.Status().Owner)
		require.Equal(t, made, p.down.get(configMaps, "a").GetUID())
		require.Equal(t, "w", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Empty(t, p.problems())
	})
}

func TestDriftIsCorrectedAndNamed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {workloads.kcp.io/cluster: my-cluster, tier: front}}, data: {k: v, gone: soon}}")
		p.rest()
		p.down.patch(configMaps, "a", `{"metadata":{"labels":{"tier":"back","theirs":"yes"}},"data":{"k":"other","more":"theirs"}}`)
		p.rest()
		down := p.down.get(configMaps, "a")
		require.Equal(t, map[string]any{"k": "v", "gone": "soon", "more": "theirs"}, field(down, "data"))
		require.Equal(t, "front", down.GetLabels()["tier"])
		require.Equal(t, "yes", down.GetLabels()["theirs"])
		require.ElementsMatch(t, []string{
			`.data.k: conflict with "somebody" using v1`, `.metadata.labels.tier: conflict with "somebody" using v1`,
		}, p.overruled)

		// Fields that are removed upstream are removed downstream. Fields that another client added stay.
		p.up.patch(configMaps, "a", `{"metadata":{"labels":{"tier":null}},"data":{"gone":null}}`)
		p.rest()
		down = p.down.get(configMaps, "a")
		require.Equal(t, map[string]any{"k": "v", "more": "theirs"}, field(down, "data"))
		require.NotContains(t, down.GetLabels(), "tier")
		require.Equal(t, "yes", down.GetLabels()["theirs"])

		// Another client deletes the downstream object.
		p.down.delete(configMaps, "a")
		p.rest()
		require.Equal(t, "v", field(p.down.get(configMaps, "a"), "data", "k"))

		// Another client removes our label.
		p.down.patch(configMaps, "a", `{"metadata":{"labels":{"syncer.atoll.dev/owner":null}}}`)
		p.rest()
		require.Equal(t, p.Status().Owner, p.down.get(configMaps, "a").GetLabels()["syncer.atoll.dev/owner"])
		require.Empty(t, p.problems())
	})
}

// With a rule with FirstWriter, an autoscaler that changes replicas downstream owns them from then on: the syncer
// neither resets nor removes them.
func TestFirstWriter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Rules: []syncer.Rule{
			{Type: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Path: "spec.replicas", Owner: syncer.FirstWriter},
		}})
		p.up.create(deployments, deployment)
		p.rest()
		require.EqualValues(t, 2, field(p.down.get(deployments, "web"), "spec", "replicas"))
		p.up.patch(deployments, "web", `{"spec":{"replicas":3}}`)
		p.rest()
		require.EqualValues(t, 3, field(p.down.get(deployments, "web"), "spec", "replicas"))

		p.down.patch(deployments, "web", `{"spec":{"replicas":7}}`)
		p.rest()
		require.EqualValues(t, 7, field(p.down.get(deployments, "web"), "spec", "replicas"))
		p.up.patch(deployments, "web", `{"spec":{"replicas":4,"paused":true}}`)
		p.rest()
		down := p.down.get(deployments, "web")
		require.EqualValues(t, 7, field(down, "spec", "replicas"))
		require.Equal(t, true, field(down, "spec", "paused"))
		p.reset()
		p.stop()
		p.start(syncer.Options{Rules: []syncer.Rule{
			{Type: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Path: "spec.replicas", Owner: syncer.FirstWriter},
		}})
		require.Empty(t, p.down.writes())
		require.Empty(t, p.overruled)
	})
}

func TestFieldsOfTheCluster(t *testing.T) {
	for name, test := range map[string]struct {
		resource     schema.GroupVersionResource
		up           string
		path         []string
		want         any
		present      bool
		opts         syncer.Options
		inDownstream string
	}{
		"Service, clusterIP":          {services, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], ipFamilies: [IPv4], ports: [{port: 80, nodePort: 30080}]}}", []string{"spec", "clusterIP"}, nil, false, syncer.Options{}, ""},
		"Service, headless":           {services, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, ports: [{port: 80}]}}", []string{"spec", "clusterIP"}, "None", true, syncer.Options{}, ""},
		"Service, nodePort":           {services, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}, {port: 81, nodePort: 30081, name: b}]}}", []string{"spec", "ports"}, []any{map[string]any{"port": int64(80), "protocol": "TCP", "targetPort": int64(80)}, map[string]any{"name": "b", "port": int64(81), "protocol": "TCP", "targetPort": int64(81)}}, true, syncer.Options{}, ""},
		"Service, nodePort on demand": {services, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}}", []string{"spec", "ports"}, []any{map[string]any{"port": int64(80), "protocol": "TCP", "targetPort": int64(80), "nodePort": int64(30080)}}, true, syncer.Options{Rules: []syncer.Rule{{Type: schema.GroupKind{Kind: "Service"}, Path: "spec.ports[*].nodePort", Owner: syncer.Upstream}}}, ""},
		"Job, selector":               {jobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {selector: {matchLabels: {batch.kubernetes.io/controller-uid: x}}, template: {metadata: {labels: {app: a, controller-uid: x, batch.kubernetes.io/controller-uid: x, job-name: a, batch.kubernetes.io/job-name: a}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}", []string{"spec", "template", "metadata", "labels"}, map[string]any{"app": "a"}, true, syncer.Options{}, ""},
		"Job, own selector":           {jobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}", []string{"spec", "selector"}, map[string]any{"matchLabels": map[string]any{"app": "a"}}, true, syncer.Options{}, ""},
		"ServiceAccount, secrets":     {schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: a-token-x}], imagePullSecrets: [{name: pull}]}", []string{"secrets"}, nil, false, syncer.Options{}, ""},
		"claim, volumeName":           {schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: pv-1, accessModes: [ReadWriteOnce]}}", []string{"spec", "volumeName"}, nil, false, syncer.Options{}, ""},
		"declared":                    {widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {address: up, list: [{id: 1, node: x}, {id: 2}]}}", []string{"spec"}, map[string]any{"list": []any{map[string]any{"id": int64(1)}, map[string]any{"id": int64(2)}}}, true, syncer.Options{Rules: []syncer.Rule{{Type: schema.GroupKind{Group: "example.org", Kind: "Widget"}, Path: "spec.address", Owner: syncer.Downstream}, {Type: schema.GroupKind{Group: "example.org", Kind: "Widget"}, Path: "spec.list[*].node", Owner: syncer.Downstream}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, test.opts)
				p.up.create(test.resource, test.up)
				p.rest()
				require.Empty(t, p.problems())
				got, present, err := unstructured.NestedFieldCopy(p.down.get(test.resource, "a").Object, test.path...)
				require.NoError(t, err)
				require.Equal(t, test.present, present)
				require.Equal(t, test.want, got)
				require.Empty(t, p.down.get(test.resource, "a").GetAnnotations()["pv.kubernetes.io/bind-completed"])
			})
		})
	}
}

// Fields that the downstream allocates stay when the object changes upstream.
func TestAllocatedFieldsStay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(services, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.7, selector: {app: a}, ports: [{port: 80}]}}")
		p.rest()
		p.down.patch(services, "a", `{"spec":{"clusterIP":"10.9.9.9"}}`)
		p.up.patch(services, "a", `{"spec":{"selector":{"app":"b"}}}`)
		p.rest()
		down := p.down.get(services, "a")
		require.Equal(t, "10.9.9.9", field(down, "spec", "clusterIP"))
		require.Equal(t, "b", field(down, "spec", "selector", "app"))
	})
}

func TestWhatMakesNoSenseElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
		p.up.create(secrets, "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a, annotations: {kubernetes.io/service-account.name: default}}}")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}")
		p.rest()
		require.Nil(t, p.down.get(secrets, "a"))
		require.Nil(t, p.down.get(configMaps, "kube-root-ca.crt"))
		require.Equal(t, []string{"configmaps default/kube-root-ca.crt NotSyncable", "secrets default/a NotSyncable"}, p.problems())
		require.Empty(t, p.up.get(secrets, "a").GetFinalizers())
	})
}

// A finished Job that was deleted downstream is not created again: it would run once more.
func TestFinishedJobIsNotMadeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(jobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}")
		p.rest()
		p.down.delete(jobs, "a")
		p.rest()
		require.NotNil(t, p.down.get(jobs, "a"), "an unfinished Job is created again")
		p.down.patch(jobs, "a", `{"status":{"succeeded":1,"conditions":[{"type":"Complete","status":"True"}]}}`, "status")
		p.rest()
		p.down.delete(jobs, "a")
		p.rest()
		require.Nil(t, p.down.get(jobs, "a"))
		p.up.delete(jobs, "a")
		p.rest()
		require.Nil(t, p.up.get(jobs, "a"))
	})
}

func TestTransformers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Transform: []syncer.Transformer{
			func(obj *unstructured.Unstructured) error {
				switch obj.GetName() {
				case "skipped":
					return syncer.Skip
				case "broken":
					return errors.New("no idea")
				case "renamed":
					obj.SetName("another")
				}
				return nil
			},
			func(obj *unstructured.Unstructured) error {
				return unstructured.SetNestedField(obj.Object, "registry.local", "data", "registry")
			},
		}})
		for _, name := range []string{"fine", "skipped", "broken", "renamed"} {
			p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}, data: {k: v}}")
		}
		p.rest()
		require.Equal(t, map[string]any{"k": "v", "registry": "registry.local"}, field(p.down.get(configMaps, "fine"), "data"))
		require.Nil(t, p.down.get(configMaps, "skipped"))
		require.Nil(t, p.down.get(configMaps, "another"))
		require.Equal(t, []string{"configmaps default/broken Transform", "configmaps default/renamed Transform"}, p.problems())
		p.reset()
		p.rest()
		require.Empty(t, p.down.writes())
	})
}

// An object that the downstream rejects is reported. It is not sent again until it has changed or ten minutes have
// passed.
func TestRefusedObjects(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.down.Inject(regiontest.Fault{Verb: "patch", Resource: configMaps.GroupResource(), Name: "a", Times: -1, Do: regiontest.Refuse(http.StatusUnprocessableEntity)})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}")
		time.Sleep(9 * time.Minute)
		require.Equal(t, []string{"configmaps default/a Refused"}, p.problems())
		require.Equal(t, []string{"patch configmaps a"}, p.down.writes())
		p.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)
		p.rest()
		require.Len(t, p.down.writes(), 2, "a changed object is sent again")
		p.down.Reset()
		time.Sleep(15 * time.Minute)
		require.Equal(t, "w", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Empty(t, p.problems())
	})
}

// Fields that a server writes in another form than the user are no reason to write again: defaults, quantities, empty
// lists and nulls.
func TestWhatServersWriteDifferentlyIsNoDifference(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(deployments, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, creationTimestamp: null}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      hostNetwork: false
      volumes: []
      securityContext: {}
      containers: [{name: c, image: "web:1", env: [], resources: {limits: {cpu: 1000m, memory: 1024Mi}}, ports: [{containerPort: 80}]}]
`)
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: w}, spec: {empty: {}, none: [], nothing: null, deep: {empty: {}}, number: 1.50}}")
		p.rest()
		p.reset()
		p.up.patch(deployments, "web", `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"2"}}}`)
		p.down.patch(deployments, "web", `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"7"}}}`)
		generation := p.down.get(deployments, "web").GetGeneration()
		p.down.patch(widgets, "w", `{"status":{"seen":true}}`, "status")
		p.stop()
		p.start(syncer.Options{})
		p.rest()
		require.Equal(t, []string{"patch deployments web", "patch widgets/status w"}, p.down.writes(), "only the test's writes")
		require.Equal(t, generation, p.down.get(deployments, "web").GetGeneration())
		require.Equal(t, []string{"patch deployments web", "patch widgets/status w"}, p.up.writes(), "the test's write, and the status")
	})
}

// If the NamespaceMap maps two upstream namespaces to one downstream namespace, objects of the same name do not
// overwrite each other.
func TestCollision(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Namespaces: all("default")})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: first}}")
		p.rest()
		p.up.create(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: other}}")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}, data: {k: second}}")
		p.rest()
		require.Equal(t, "first", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Equal(t, []string{"configmaps other/a Collision"}, p.problems())
	})
}

// all maps all namespaces to one, which a NamespaceMap must not do.
type all string

func (a all) Down(string) (string, error) { return string(a), nil }
func (a all) Up(ns string) (string, bool) { return ns, true }

// If the reply to a write is lost, the syncer still brings the object to its desired state, and does not report its
// own object as foreign.
func TestLostReplies(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.down.Inject(regiontest.Fault{Verb: "patch", Resource: configMaps.GroupResource(), Do: regiontest.DropReply()})
		p.up.Inject(regiontest.Fault{Verb: "patch", Resource: configMaps.GroupResource(), Do: regiontest.DropReply()})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}")
		p.rest()
		require.Equal(t, "v", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Empty(t, p.problems())
		p.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)
		p.down.Inject(regiontest.Fault{Verb: "delete", Resource: configMaps.GroupResource(), Do: regiontest.DropReply()})
		p.rest()
		require.Equal(t, "w", field(p.down.get(configMaps, "a"), "data", "k"))
		p.up.delete(configMaps, "a")
		p.rest()
		require.Nil(t, p.up.get(configMaps, "a"))
	})
}

// If an object is deleted and created again upstream while no syncer runs, the new object takes the downstream object
// over: the upstream may have lost the old one.
func TestReplacedObject(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}")
		p.rest()
		before := p.down.get(configMaps, "a").GetUID()
		p.stop()
		p.up.patch(configMaps, "a", `{"metadata":{"finalizers":null}}`)
		p.up.delete(configMaps, "a")
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}")
		p.start(syncer.Options{})
		p.rest()
		after := p.down.get(configMaps, "a")
		require.Equal(t, before, after.GetUID())
		require.Empty(t, p.problems())
		require.Equal(t, types.UID(after.GetAnnotations()["syncer.atoll.dev/uid"]), p.up.get(configMaps, "a").GetUID())
	})
}
