// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter/placement"
)

// account creates a ServiceAccount that pulls images with a Secret.
func (w *world) account(name, secret string) {
	w.t.Helper()
	w.create(core("serviceaccounts"), fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s}, imagePullSecrets: [{name: %s}]}", name, secret))
}

func (w *world) secrets(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.create(core("secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}}")
	}
}

// as returns a Deployment whose pods use a ServiceAccount.
func as(name, account string) string {
	return strings.ReplaceAll(deployment(name, 2, ""), "containers:", "serviceAccountName: "+account+", containers:")
}

// The Secrets with which the pods of a ServiceAccount pull images follow the workloads of the ServiceAccount, also after
// changes of the workload and of the ServiceAccount.
func TestSecretsOfServiceAccounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("all", "{dependents: true}")
		w.startPlacement(placement.Options{Linger: time.Minute}, cluster("a"))
		w.secrets("early", "late", "other", "changed")
		w.account("builder", "early")
		w.create(deployments, as("web", "builder"))
		w.create(deployments, as("db", "runner"))
		w.rest()
		w.account("runner", "late")
		w.account("unused", "other")
		w.rest()
		w.everywhere(core("serviceaccounts"), map[string]string{"builder": "a", "runner": "a", "unused": "NONE"})
		w.everywhere(core("secrets"), map[string]string{"early": "a", "late": "a", "other": "NONE", "changed": "NONE"})

		w.patch(core("serviceaccounts"), "builder", `{"imagePullSecrets":[{"name":"changed"}]}`)
		w.patch(deployments, "db", `{"spec":{"template":{"spec":{"serviceAccountName":"unused"}}}}`)
		time.Sleep(2 * time.Minute)
		w.rest()
		w.everywhere(core("secrets"), map[string]string{"early": "NONE", "late": "NONE", "other": "a", "changed": "a"})

		// The ServiceAccount "fixed" is placed by another policy, so a change of the workload does not move it.
		w.policy("fixed", "{selector: {matchLabels: {fixed: account}}}")
		w.secrets("own")
		w.create(core("serviceaccounts"), "{apiVersion: v1, kind: ServiceAccount, metadata: {name: fixed, labels: {fixed: account}}, imagePullSecrets: [{name: own}]}")
		w.rest()
		w.everywhere(core("secrets"), map[string]string{"own": "NONE"})
		w.everywhere(core("serviceaccounts"), map[string]string{"fixed": "a"})
		w.patch(deployments, "web", `{"spec":{"template":{"spec":{"serviceAccountName":"fixed"}}}}`)
		w.rest()
		w.everywhere(core("secrets"), map[string]string{"own": "a"})

		w.remove(core("serviceaccounts"), "unused")
		time.Sleep(2 * time.Minute)
		w.everywhere(core("secrets"), map[string]string{"other": "NONE", "own": "a"})
	})
}

// While ServiceAccounts cannot be listed after a restart, a Secret of one of them stays in its clusters.
func TestSecretsOfServiceAccountsThatAreNotKnown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("all", "{dependents: true}")
		w.secrets("pull")
		w.account("builder", "pull")
		w.create(deployments, as("web", "builder"))
		stop := w.startPlacement(placement.Options{Linger: time.Second}, cluster("a"))
		w.rest()
		w.everywhere(core("secrets"), map[string]string{"pull": "a"})
		stop()
		w.Inject(regiontest.Fault{Verb: "list", Resource: core("serviceaccounts").GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
		w.startPlacement(placement.Options{Linger: time.Second}, cluster("a"))
		w.patch(core("secrets"), "pull", `{"metadata":{"annotations":{"it":"changes"}}}`)
		time.Sleep(time.Minute)
		w.everywhere(core("secrets"), map[string]string{"pull": "a"})
	})
}
