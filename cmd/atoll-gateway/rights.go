// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region/central"
)

// printing holds the flags that print rights.
type printing struct {
	where               string
	users, groups, uids []string
	extra               []string
}

func (p *printing) define(flags *flag.FlagSet) {
	flags.StringVar(&p.where, "rights", "", "print the least rights in `plane, peer or tokenreview`, in YAML, and exit")
	each := func(list *[]string, name, usage string) {
		flags.Func(name, usage, func(value string) error {
			*list = append(*list, value)
			return nil
		})
	}
	each(&p.users, "as", "with --rights peer, a `user` who calls; repeat it for each")
	each(&p.groups, "as-group", "with --rights peer, a `group` of callers")
	each(&p.uids, "as-uid", "with --rights peer and passUIDs, a caller's `UID`")
	each(&p.extra, "as-extra", "with --rights peer, an extra value of callers, as `key=value`, of one of the extraKeys")
}

func (p *printing) named() bool { return len(p.users)+len(p.groups)+len(p.uids)+len(p.extra) > 0 }

// print writes the least roles of a gateway with the given configuration.
func (p *printing) print(out io.Writer, c *config.Configuration) error {
	cluster, namespaced, err := p.roles(c)
	if err != nil {
		return err
	}
	text, err := rights.YAML(cluster, namespaced)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

func (p *printing) roles(c *config.Configuration) ([]*rbacv1.ClusterRole, []*rbacv1.Role, error) {
	if p.named() && p.where != "peer" {
		return nil, nil, errors.New("--as, --as-group, --as-uid and --as-extra need --rights peer")
	}
	switch p.where {
	case "plane":
		return inPlane(c)
	case "tokenreview":
		if c.Authentication.TokenReview == nil {
			return nil, nil, errors.New("authentication.tokenReview is not set: no API server is asked about tokens")
		}
		return []*rbacv1.ClusterRole{rights.TokenReviews()}, nil, nil
	case "peer":
		return p.inPeer(c)
	}
	return nil, nil, fmt.Errorf("%q is not known; accepted: plane, peer or tokenreview", p.where)
}

// inPlane returns the roles in the central plane.
func inPlane(c *config.Configuration) ([]*rbacv1.ClusterRole, []*rbacv1.Role, error) {
	plane := c.Source.Central
	if plane == nil {
		return nil, nil, errors.New("source.central is not set: the gateway uses no central plane")
	}
	review := c.Authentication.TokenReview
	kubeconfigs := rights.Kubeconfigs(cmp.Or(plane.Namespace, central.Namespace))
	kubeconfigs.Name = "atoll-gateway"
	roles := []*rbacv1.ClusterRole{rights.Gateway(review != nil && review.Peer == "" && review.KubeconfigFile == plane.KubeconfigFile)}
	if c.Fanout != nil {
		roles = append(roles, rights.Coordinate()) // the plane is a member of the ring, as the Peer local
	}
	return roles, []*rbacv1.Role{kubeconfigs}, nil
}

// inPeer returns the roles in each peer. The identities that mappings give out are among the callers.
func (p *printing) inPeer(c *config.Configuration) (cluster []*rbacv1.ClusterRole, namespaced []*rbacv1.Role, err error) {
	if c.Fanout != nil {
		cluster = append(cluster, rights.Coordinate())
	}
	callers, err := p.callers(c.Authentication)
	if err != nil {
		return nil, nil, err
	}
	if c.Authentication.PassThrough != nil && len(callers.Users) == 0 {
		return append(cluster, rights.Identity()), nil, nil
	}
	act, accounts, err := rights.Impersonate(callers)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; name the callers with --as USER and --as-group GROUP", err)
	}
	return append(cluster, act), accounts, nil
}

func (p *printing) callers(a config.Authentication) (rights.Impersonation, error) {
	callers := rights.Impersonation{Users: slices.Clone(p.users), Groups: slices.Clone(p.groups), UIDs: p.uids, Extra: map[string][]string{}}
	if len(p.uids) > 0 && !a.PassUIDs {
		return callers, errors.New("--as-uid: authentication.passUIDs is not set, so no UID is passed on")
	}
	for _, pair := range p.extra {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || !slices.Contains(a.ExtraKeys, key) {
			return callers, fmt.Errorf("--as-extra %q: write KEY=VALUE, where KEY is one of authentication.extraKeys: %s", pair, strings.Join(a.ExtraKeys, ", "))
		}
		callers.Extra[key] = append(callers.Extra[key], value)
	}
	for _, m := range a.Mappings {
		if m.User != "" {
			callers.Users = append(callers.Users, m.As)
		} else {
			callers.Groups = append(callers.Groups, m.As)
		}
	}
	return callers, nil
}
