// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rightstest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// Admin is the token of the test, which may do everything. Program is the token of the program
// under test.
const (
	Admin   = "admin"
	Program = "program"
)

// Tokens returns the users, by token, of an API server with Grants as its authorizer.
func Tokens() map[string]regiontest.User {
	return map[string]regiontest.User{Admin: {Name: Admin, Groups: []string{"system:masters"}}, Program: {Name: Program}}
}

// API returns a connection to s as the user of token. The users of s must be Tokens.
func API(t testing.TB, s *regiontest.Server, token string) region.API {
	t.Helper()
	config := s.Config()
	config.BearerToken = token
	api, err := region.APIFor(config)
	require.NoError(t, err)
	return api
}

// Grants holds the rights of a program in one API server, and records their use. It is safe for
// concurrent use.
type Grants struct {
	granted []granted

	mu     sync.Mutex
	used   map[string]bool
	denied []string
}

// granted is a rule in one namespace, or cluster-wide if namespace is empty.
type granted struct {
	rbacv1.PolicyRule
	namespace string
}

// New returns Grants with rules, cluster-wide.
func New(rules ...rbacv1.PolicyRule) *Grants {
	return (&Grants{used: map[string]bool{}}).In("", rules...)
}

// Of returns Grants with the rules of roles.
func Of(cluster []*rbacv1.ClusterRole, namespaced []*rbacv1.Role) *Grants {
	g := New()
	for _, r := range cluster {
		g.In("", r.Rules...)
	}
	for _, r := range namespaced {
		g.In(r.Namespace, r.Rules...)
	}
	return g
}

// In adds rules in one namespace. Call it before the server gets requests.
func (g *Grants) In(namespace string, rules ...rbacv1.PolicyRule) *Grants {
	for _, rule := range rules {
		g.granted = append(g.granted, granted{rule, namespace})
	}
	return g
}

// Authorize implements regiontest.Options.Authorize: it returns an error for a request that no rule
// allows.
func (g *Grants) Authorize(r regiontest.Request) error {
	if r.Resource == "" || slices.Contains(r.User.Groups, "system:masters") {
		return nil // discovery, and the test itself
	}
	return g.use(r, r.Verb)
}

// use records the use of a right, in every rule that grants it.
func (g *Grants) use(r regiontest.Request, verb string) error {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	allowed := false
	for i, rule := range g.granted {
		if has(rule.APIGroups, r.Group) && has(rule.Resources, resource) && slices.Contains(rule.Verbs, verb) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name)) && (rule.namespace == "" || rule.namespace == r.Namespace) {
			g.used[rule.name(i, verb)], allowed = true, true
		}
	}
	if allowed {
		return nil
	}
	denied := strings.TrimSpace(fmt.Sprintf("%s %s.%s %s", verb, resource, r.Group, r.Name))
	if r.Namespace != "" {
		denied += " in " + r.Namespace
	}
	g.denied = append(g.denied, denied)
	return fmt.Errorf("no role allows %s", denied)
}

// has reports whether named contains name or "*".
func has(named []string, name string) bool {
	return slices.Contains(named, name) || slices.Contains(named, "*")
}

func (g granted) name(i int, verb string) string {
	return strings.TrimSpace(fmt.Sprintf("rule %d: %s %s.%s %s", i, verb, g.Resources[0], g.APIGroups[0], strings.Join(g.ResourceNames, ",")))
}

// Denied returns the refused requests of the program. requests are all requests that the server
// got: an apply that created an object needs the right to create, too, as on a real server.
func (g *Grants) Denied(requests []regiontest.Request) []string {
	for _, r := range requests {
		if r.User.Name == Program && r.Verb == "patch" && r.Code == 201 {
			_ = g.use(r, "create") // a missing right is added to denied
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.denied)
}

// Unused returns the rights that were not used. Call it after Denied.
func (g *Grants) Unused() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var unused []string
	for i, rule := range g.granted {
		for _, verb := range rule.Verbs {
			if n := rule.name(i, verb); !g.used[n] {
				unused = append(unused, n)
			}
		}
	}
	return unused
}
