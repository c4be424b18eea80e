// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// needed returns the CRDs that the commands use.
var needed = sync.OnceValues(func() (*regiontest.Definitions, error) {
	return compile("accounts.catalog.kubecarrier.io", "serviceclusters.kubecarrier.io", "regionclaims.kubecarrier.io", "peersets.fanout.atoll.dev")
})

// central returns the CRDs of the central plane.
var central = sync.OnceValues(func() (*regiontest.Definitions, error) { return compile("operations.fanout.atoll.dev") })

// upstreams returns the CRDs of an upstream that places objects.
var upstreams = sync.OnceValues(func() (*regiontest.Definitions, error) {
	return compile("placementpolicies.splitter.atoll.dev", "clusterplacementpolicies.splitter.atoll.dev", "synctargets.workload.kcp.io")
})

func compile(names ...string) (*regiontest.Definitions, error) {
	crds := make([]*apiextensionsv1.CustomResourceDefinition, len(names))
	for i, name := range names {
		var err error
		if crds[i], err = config.CRD(name); err != nil {
			return nil, err
		}
	}
	return regiontest.Compile(crds...)
}

// server is a peer or a central plane: an API server in memory. At first it grants the rights of
// the roles with which serve started it; deny and grant change these rights.
type server struct {
	*regiontest.Server
	kubeconfig []byte
	secrets    [][]byte // tokens and keys in the kubeconfig, which no command may print
	saved      regiontest.Saved

	mu      sync.Mutex
	denied  []right
	allowed []right
	used    map[right]bool
	killer  *killer // kills the process that makes the requests; may be nil
}

// right is a verb on a resource or on a subresource.
type right struct {
	verb     string
	resource schema.GroupResource
}

func newServer(deferred func(func()), check func(error), name string, crds bool) *server {
	var types *regiontest.Definitions
	if crds {
		var err error
		types, err = needed()
		check(err)
	}
	return serve(deferred, check, name, types, rights.Coordinate(), rights.Install())
}

// serve starts a server that has the types and grants the rights of the roles.
func serve(deferred func(func()), check func(error), name string, types *regiontest.Definitions, roles ...*rbacv1.ClusterRole) *server {
	s := &server{used: map[right]bool{}, allowed: granted(roles...)}
	s.Server = regiontest.NewServer(regiontest.Options{Name: name, Authorize: s.authorize, Definitions: types})
	ctx, cancel := context.WithCancel(context.Background())
	deferred(func() {
		cancel()
		s.Close()
	})
	var err error
	s.kubeconfig, err = s.Listen(ctx)
	check(err)
	for _, match := range regexp.MustCompile(`(?:token|client-key-data): (\S+)`).FindAllSubmatch(s.kubeconfig, -1) {
		s.secrets = append(s.secrets, match[1])
	}
	if len(s.secrets) == 0 {
		check(errors.New("the kubeconfig holds no secret"))
	}
	return s
}

// previewRights is the role that "placement preview" needs.
func previewRights() *rbacv1.ClusterRole {
	rule := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"list"}}
	}
	return &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		rule("splitter.atoll.dev", "placementpolicies", "clusterplacementpolicies"), rule("workload.kcp.io", "synctargets"), rule("apps", "deployments"),
		rule("", "namespaces", "configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims", "services"),
		rule("networking.k8s.io", "ingresses", "networkpolicies"),
	}}
}

// granted returns the rights that roles grant.
func granted(roles ...*rbacv1.ClusterRole) []right {
	var all []right
	for _, role := range roles {
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				for _, resource := range rule.Resources {
					all = append(all, right{verb, schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}})
				}
			}
		}
	}
	return all
}

// authorize accepts a request if its right is in allowed and not in denied, and records the right
// as used. It rejects the writes of a process that s.killer has killed.
func (s *server) authorize(r regiontest.Request) error {
	if r.Resource == "" || r.GroupResource() == accessReviews.GroupResource() { // which every authenticated user may read
		return nil
	}
	asked := right{r.Verb, r.GroupResource()}
	if r.Subresource != "" {
		asked.resource.Resource += "/" + r.Subresource
	}
	if !s.mayWrite(r.Verb) {
		return errors.New("its sender was killed")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.denied, asked) || !slices.Contains(s.allowed, asked) {
		return fmt.Errorf("no role allows %s of %s", asked.verb, asked.resource)
	}
	if r.Path != "" { // a review asks whether a request would be allowed, and uses no right
		s.used[asked] = true
	}
	return nil
}

// watch makes k count each write from now on, before the write has an effect. If k is nil, no
// killer counts the writes.
func (s *server) watch(k *killer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killer = k
}

func (s *server) mayWrite(verb string) bool {
	s.mu.Lock()
	k := s.killer
	s.mu.Unlock()
	return k == nil || verb == "get" || verb == "list" || k.write()
}

func (s *server) deny(verb string, resource schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = append(s.denied, right{verb, resource})
}

func (s *server) grant(verb string, resource schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = append(s.allowed, right{verb, resource})
}

// send sends a request to a path such as
// apis/kubecarrier.io/v1alpha1/namespaces/acme/serviceclusters/db.
func (s *server) send(method, path, body string) (text []byte, code int) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), method, "/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	s.ServeHTTP(w, r)
	return w.Body.Bytes(), w.Code
}

func writeFile(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
