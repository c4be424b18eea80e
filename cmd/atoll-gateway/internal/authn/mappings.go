// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/router"
)

// systemPrefix begins the names that Kubernetes reserves; their meaning differs from cluster to cluster.
const systemPrefix = "system:"

// mappings decide as whom an authenticated user acts in the regions.
type mappings struct {
	users, groups map[string]string
	extra         []string
	uids          bool
}

func newMappings(c *config.Authentication) mappings {
	m := mappings{users: map[string]string{}, groups: map[string]string{}, extra: c.ExtraKeys, uids: c.PassUIDs}
	for _, mapping := range c.Mappings {
		if mapping.User != "" {
			m.users[mapping.User] = mapping.As
		} else {
			m.groups[mapping.Group] = mapping.As
		}
	}
	return m
}

// acting returns the user and groups as which u acts in the regions. If no mapping names u, and its name is empty or
// begins with "system:", acting returns an error that wraps router.ErrIdentity.
func (m mappings) acting(u user.Info) (router.User, error) {
	name, mapped := m.users[u.GetName()]
	if !mapped {
		name = u.GetName()
		if name == "" || strings.HasPrefix(name, systemPrefix) {
			return router.User{}, fmt.Errorf("%w: user %q acts in no region without an entry in authentication.mappings", router.ErrIdentity, name)
		}
	}
	acting := router.User{Name: name}
	if m.uids {
		acting.UID = u.GetUID()
	}
	for _, group := range u.GetGroups() {
		as, mapped := m.groups[group]
		if !mapped {
			if group == "" || strings.HasPrefix(group, systemPrefix) {
				continue
			}
			as = group
		}
		if !slices.Contains(acting.Groups, as) {
			acting.Groups = append(acting.Groups, as)
		}
	}
	for _, key := range m.extra {
		if values := u.GetExtra()[key]; len(values) > 0 {
			if acting.Extra == nil {
				acting.Extra = map[string][]string{}
			}
			acting.Extra[key] = values
		}
	}
	return acting, nil
}

// Users and Groups are the router's filters: they admit names beginning with "system:" only if a mapping names them.
func (a *Authenticator) Users(name string) bool { return admitted(name, a.mappings.users) }

// Groups is Users for groups.
func (a *Authenticator) Groups(name string) bool { return admitted(name, a.mappings.groups) }

func admitted(name string, mapped map[string]string) bool {
	if !strings.HasPrefix(name, systemPrefix) {
		return true
	}
	for _, as := range mapped {
		if as == name {
			return true
		}
	}
	return false
}
