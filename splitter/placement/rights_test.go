// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/rights"
	atollregion "github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// ledger lets the user "placement" do what the printed role says, and notes what is used and what is refused.
type ledger struct {
	mu      sync.Mutex
	granted map[string]bool // used
	refused []string
}

func newLedger() *ledger {
	l := &ledger{granted: map[string]bool{}}
	for _, rule := range rights.Placement().Rules {
		for _, verb := range rule.Verbs {
			l.granted[fmt.Sprintf("%s %s.%s", verb, rule.Resources[0], rule.APIGroups[0])] = false
		}
	}
	return l
}

func (l *ledger) authorize(r regiontest.Request) error {
	if r.User.Name != "placement" || r.Resource == "" {
		return nil
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	right := fmt.Sprintf("%s %s.%s", r.Verb, resource, r.Group)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.granted[right]; !ok {
		l.refused = append(l.refused, right)
		return fmt.Errorf("no role allows %s", right)
	}
	l.granted[right] = true
	return nil
}

// A workload and one object of each kind that follows it are placed with the role that is printed, and each right in it is
// used.
func TestRightsSufficeAndAreUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var crds []*apiextensionsv1.CustomResourceDefinition
		for _, name := range []string{"placementpolicies.splitter.atoll.dev", "synctargets.workload.kcp.io"} {
			crd, err := config.CRD(name)
			require.NoError(t, err)
			crds = append(crds, crd)
		}
		l := newLedger()
		s := regiontest.NewServer(regiontest.Options{CRDs: crds, Authorize: l.authorize, Tokens: map[string]regiontest.User{"p": {Name: "placement"}, "admin": {Name: "admin"}}})
		t.Cleanup(s.Close)
		as := func(token string) atollregion.API {
			cfg := s.Config()
			cfg.BearerToken = token
			api, err := atollregion.APIFor(cfg)
			require.NoError(t, err)
			return api
		}
		w := &world{Server: s, t: t, api: as("admin")}
		targets := w.api.Dynamic().Resource(syncerv1alpha1.GroupVersion.WithResource("synctargets"))
		_, err := targets.Create(t.Context(), unstructuredOf(t, "{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: a}, spec: {kubeconfig: none}}"), metav1.CreateOptions{})
		require.NoError(t, err)
		ready := `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`
		_, err = targets.Patch(t.Context(), "a", types.MergePatchType, []byte(ready), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		api := as("p")
		c, err := placement.New(api, splitter.SyncTargets(api), placement.Options{})
		require.NoError(t, err)
		w.start(c.Start)

		w.policy("all", "{dependents: true}")
		w.create(deployments, deployment("web", 1, ", serviceAccountName: x, volumes: [{name: c, configMap: {name: x}}, {name: s, secret: {secretName: x}}, {name: p, persistentVolumeClaim: {claimName: x}}]"))
		kinds := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "serviceaccounts": "ServiceAccount", "persistentvolumeclaims": "PersistentVolumeClaim", "services": "Service"}
		for resource, kind := range kinds {
			spec := ""
			if resource == "services" {
				spec = ", spec: {selector: {app: web}}"
			}
			w.create(core(resource), fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: x}%s}", kind, spec))
		}
		time.Sleep(time.Minute)
		for resource := range kinds {
			require.Equal(t, "a", w.targets(core(resource), "x"), resource)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		require.Empty(t, l.refused)
		var unused []string
		for right, used := range l.granted {
			if !used {
				unused = append(unused, right)
			}
		}
		slices.Sort(unused)
		require.Empty(t, unused)
	})
}
