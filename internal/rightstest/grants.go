// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rightstest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// Admin is the token of who may do everything: the test. Program is that of who has the rights.
const (
	Admin   = "admin"
	Program = "program"
)

// Tokens are those of an API server with an authorizer of Grants.
func Tokens() map[string]regiontest.User {
	return map[string]regiontest.User{Admin: {Name: Admin, Groups: []string{"system:masters"}}, Program: {Name: Program}}
}

// Grants are the rights of a program in one API server. They are safe for concurrent use.
type Grants struct {
	rules []rbacv1.PolicyRule

	mu     sync.Mutex
	used   map[string]bool
	denied []string
}

// New returns what rules grant.
func New(rules ...rbacv1.PolicyRule) *Grants { return &Grants{rules: rules, used: map[string]bool{}} }

// Authorize is an API server's authorizer.
func (g *Grants) Authorize(r regiontest.Request) error {
	if r.Resource == "" || slices.Contains(r.User.Groups, "system:masters") {
		return nil // what everybody may read; the test itself
	}
	return g.use(r, r.Verb)
}

func (g *Grants) use(r regiontest.Request, verb string) error {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, rule := range g.rules {
		if slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Name)) {
			g.used[name(i, rule, verb)] = true
			return nil
		}
	}
	denied := strings.TrimSpace(fmt.Sprintf("%s %s.%s %s", verb, resource, r.Group, r.Name))
	g.denied = append(g.denied, denied)
	return fmt.Errorf("no role allows %s", denied)
}

func name(i int, rule rbacv1.PolicyRule, verb string) string {
	return strings.TrimSpace(fmt.Sprintf("rule %d: %s %s.%s %s", i, verb, rule.Resources[0], rule.APIGroups[0], strings.Join(rule.ResourceNames, ",")))
}

// Denied are the requests of the program that were refused. requests are all that the server had: who applies what is not
// there needs the right to create it, which real servers ask for as well.
func (g *Grants) Denied(requests []regiontest.Request) []string {
	for _, r := range requests {
		if r.User.Name == Program && r.Verb == "patch" && r.Code == 201 {
			_ = g.use(r, "create") // what is missing is among those denied
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.denied)
}

// Unused are the rights of which no use was made, after Denied.
func (g *Grants) Unused() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var unused []string
	for i, rule := range g.rules {
		for _, verb := range rule.Verbs {
			if n := name(i, rule, verb); !g.used[n] {
				unused = append(unused, n)
			}
		}
	}
	return unused
}
