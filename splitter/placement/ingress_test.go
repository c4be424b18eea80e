// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter/placement"
)

var (
	ingresses       = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	networkPolicies = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
)

func (w *world) service(name, selector string) {
	w.t.Helper()
	w.create(core("services"), fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {selector: {%s}, ports: [{port: 80}]}}", name, selector))
}

func (w *world) networkPolicy(name, selector string) {
	w.t.Helper()
	w.create(networkPolicies, fmt.Sprintf("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: %s}, spec: {podSelector: {%s}}}", name, selector))
}

// routed creates an Ingress to two Services, with a Secret for TLS.
func (w *world) routed(name, path, fallback, secret string) {
	w.t.Helper()
	w.create(ingresses, fmt.Sprintf(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: %s}, spec: {
		defaultBackend: {service: {name: %s, port: {number: 80}}}, tls: [{hosts: [example.org], secretName: %s}],
		rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: %s, port: {number: 80}}}}]}}]}}`, name, fallback, secret, path))
}

func (w *world) everywhere(gvr schema.GroupVersionResource, want map[string]string) {
	w.t.Helper()
	for name, clusters := range want {
		require.Equal(w.t, clusters, w.targets(gvr, name), "%s %s", gvr.Resource, name)
	}
}

// An Ingress follows the workloads behind its Services, and its Secrets follow the Ingress. A NetworkPolicy follows the
// workloads whose pods it selects. Each follows later changes of the objects between it and the workload.
func TestIngressesAndNetworkPolicies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("web", "{dependents: true, priority: 1, selector: {matchLabels: {app: web}}, clusterSelector: {matchLabels: {for: web}}}")
		w.policy("db", "{dependents: true, selector: {matchLabels: {app: db}}, clusterSelector: {matchLabels: {for: db}}}")
		w.startPlacement(placement.Options{Linger: time.Minute}, cluster("a", "for=web"), cluster("b", "for=db"))
		w.routed("early", "web", "web", "early")
		for _, name := range []string{"early", "tls", "other"} {
			w.create(core("secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}}")
		}
		w.rest()
		w.everywhere(ingresses, map[string]string{"early": "NONE"})

		w.service("web", "app: web")
		w.service("db", "app: db")
		w.routed("both", "web", "db", "tls")
		w.routed("none", "absent", "absent", "other")
		w.networkPolicy("web", "matchLabels: {app: web}")
		w.networkPolicy("listed", "matchExpressions: [{key: app, operator: In, values: [db, cache]}]")
		w.networkPolicy("all", "")
		w.networkPolicy("none", "matchLabels: {app: cache}")
		for _, name := range []string{"web", "db"} {
			w.create(deployments, strings.ReplaceAll(deployment(name, 2, ""), "app: web", "app: "+name))
		}
		w.rest()
		w.everywhere(ingresses, map[string]string{"early": "a", "both": "a,b", "none": "NONE"})
		w.everywhere(core("secrets"), map[string]string{"early": "a", "tls": "a,b", "other": "NONE"})
		w.everywhere(networkPolicies, map[string]string{"web": "a", "listed": "b", "all": "a,b", "none": "NONE"})

		w.patch(core("services"), "web", `{"spec":{"selector":{"app":"db"}}}`)
		w.patch(ingresses, "none", `{"spec":{"defaultBackend":{"service":{"name":"db"}}}}`)
		w.patch(networkPolicies, "none", `{"spec":{"podSelector":{"matchLabels":{"app":"web"}}}}`)
		time.Sleep(2 * time.Minute)
		w.rest()
		w.everywhere(ingresses, map[string]string{"early": "b", "both": "b", "none": "b"})
		w.everywhere(core("secrets"), map[string]string{"early": "b", "tls": "b", "other": "b"})
		w.everywhere(networkPolicies, map[string]string{"none": "a"})

		w.patch(ingresses, "none", `{"spec":{"tls":[{"secretName":"absent"}]}}`)
		w.remove(ingresses, "early")
		w.remove(core("services"), "web")
		time.Sleep(2 * time.Minute)
		w.everywhere(core("secrets"), map[string]string{"early": "NONE", "tls": "b", "other": "NONE"})
		w.everywhere(ingresses, map[string]string{"both": "b"})
	})
}

// While Ingresses cannot be listed after a restart, a Secret that one of them refers to stays in its clusters.
func TestSecretsOfIngressesThatAreNotKnown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("all", "{dependents: true}")
		w.service("web", "app: web")
		w.routed("web", "web", "web", "tls")
		w.create(core("secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: tls}}")
		w.create(deployments, deployment("web", 2, ""))
		stop := w.startPlacement(placement.Options{Linger: time.Second}, cluster("a"))
		w.rest()
		w.everywhere(core("secrets"), map[string]string{"tls": "a"})
		stop()
		w.Inject(regiontest.Fault{Verb: "list", Resource: ingresses.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
		w.startPlacement(placement.Options{Linger: time.Second}, cluster("a"))
		w.patch(core("secrets"), "tls", `{"metadata":{"annotations":{"it":"changes"}}}`)
		time.Sleep(time.Minute)
		w.everywhere(core("secrets"), map[string]string{"tls": "a"})
	})
}
