// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/rights"
)

func (s *session) rbac() *cobra.Command {
	var f requested
	c := &cobra.Command{
		Use:   "rbac",
		Short: "Print the least ClusterRole that each peer must grant",
		Long: `Print the least ClusterRole that each peer must grant to the user of its
kubeconfig. It suffices for all commands but install-crds, whose rights --install
prints. --central prints those that the central plane of --log must grant. Apply the
role in each peer, and bind it:

  ` + s.program + ` rbac | kubectl apply -f -
  kubectl create clusterrolebinding atoll --clusterrole=atoll --user=USER

With --kinds, print the rights of a program that runs a fanout.Coordinator with kinds
of its own, for each type of fanout.Options.Kinds; the program may need others for its
own requests. The peers become members of the ring by "peer init" or "peer join":

  ` + s.program + ` rbac --kinds databases.operator.example.com,secrets

With --loops, print the rights of a program that runs these loops, such as the
controller manager: the roles of a peer, or with --central those of the central
plane, where some are bound in --loops-namespace. A plane that is a peer too (the
Peer "local") grants both. The loops are ` + strings.Join(rights.LoopNames(), ", ") + `, or all:

  ` + s.program + ` rbac --loops all --central --loops-namespace kubecarrier-system

For an upstream of clusters there is also ` + strings.Join(rights.UpstreamLoopNames(), ", ") + `, which "all" does not include.

With --sync, print the rights of a program that syncs clusters with an upstream: the
roles of the upstream, or with --downstream those of each cluster. The parts are
` + strings.Join(rights.SyncParts(), ", ") + `. --types names the synced, divided or defined types:

  ` + s.program + ` rbac --sync targets --downstream --pull --types deployments.apps,configmaps

With --as, print instead the rights of a program that routes requests of these users
to the peer. They include get of the namespace kube-system, which identifies the
cluster: without it new credentials are rejected. For a service account, a Role in its
namespace is printed as well. --as-on limits the requests that may be made as these
users, which needs peers with constrained impersonation (Kubernetes 1.36):

  ` + s.program + ` rbac --as alice --as-group dev --as-on get,list:couchdbs.eu-west-1.loodse`,
		Args: cobra.NoArgs,
		RunE: s.run(func(context.Context, []string) error { return s.printRequested(f) }),
	}
	c.Flags().BoolVar(&f.install, "install", false, "print the rights of install-crds")
	c.Flags().BoolVar(&f.central, "central", false, "print the rights of --log, or --loops, in the central plane")
	c.Flags().StringSliceVar(&f.kinds, "kinds", nil, "print the rights of a coordinator of kinds of these `types`, as resource.group")
	c.Flags().StringSliceVar(&f.loops, "loops", nil, "print the rights of a program that runs these `loops`")
	c.Flags().StringVar(&f.namespace, "loops-namespace", "kubecarrier-system", "`namespace` of Leases and kubeconfigs in the central plane")
	c.Flags().StringSliceVar(&f.sync.parts, "sync", nil, "print the rights of these `parts` of syncing")
	c.Flags().BoolVar(&f.sync.downstream, "downstream", false, "with --sync, the rights in each cluster")
	c.Flags().BoolVar(&f.sync.pull, "pull", false, "with --sync targets: syncers are installed inside clusters")
	c.Flags().StringVar(&f.sync.target, "target", "", "with --sync syncer, the `SyncTarget` whose status it writes")
	c.Flags().StringSliceVar(&f.sync.types, "types", nil, "with --sync, the `types`, as resource.group (default the types of workloads)")
	c.Flags().StringSliceVar(&f.sync.permit, "permit", nil, "with --sync, the `powers` over clusters that authors of upstream objects may have, such as RBAC")
	c.Flags().StringSliceVar(&f.sync.upsync, "upsync", nil, "with --sync, those of the `types` whose objects, if created in clusters, are synced upstream")
	c.Flags().BoolVar(&f.sync.deleteUpstream, "delete-upstream", false, "with --sync: the deletion of a downstream object deletes its origin")
	c.Flags().BoolVar(&f.sync.unscheduled, "unscheduled", false, "with --sync and --downstream: pods without a node are counted")
	c.Flags().StringVar(&f.sync.namespace, "secrets-namespace", "", "with --sync targets, the `namespace` of Secrets with kubeconfigs")
	c.Flags().StringVar(&f.name, "name", "", "`name` of the ClusterRole (default atoll, atoll-install, atoll-central or atoll-impersonate)")
	c.Flags().StringArrayVar(&f.as.users, "as", nil, "a `user` to impersonate; repeat it for each")
	c.Flags().BoolVar(&f.as.any, "as-any-user", false, "any user except nodes and service accounts; needs --as-on")
	c.Flags().StringArrayVar(&f.as.groups, "as-group", nil, "a `group` to impersonate")
	c.Flags().StringArrayVar(&f.as.uids, "as-uid", nil, "a user's `UID` to impersonate")
	c.Flags().StringArrayVar(&f.as.extra, "as-extra", nil, "an extra value to impersonate, as `key=value`")
	c.Flags().StringArrayVar(&f.as.on, "as-on", nil, "requests that are allowed as these users, as `verb,...:resource.group`; repeat it for each resource")
	return c
}

// requested holds the flags of rbac, which select the rights to print.
type requested struct {
	install, central bool
	kinds, loops     []string
	sync             syncing
	as               impersonation
	name, namespace  string
}

// contradiction returns an error if the flags request roles that cannot be printed together.
func (f requested) contradiction() error {
	role := f.as.given() || f.install || f.central || len(f.loops) > 0
	switch {
	case len(f.kinds) > 0 && (len(f.sync.parts) > 0 || role):
		return badInput("print them one after the other", "--kinds, --sync, --loops, --install, --central and --as are roles of their own")
	case len(f.sync.parts) == 0 && f.sync.given():
		return badInput("name the parts: --sync "+strings.Join(rights.SyncParts(), ","),
			"--downstream, --pull, --target, --types, --permit, --upsync, --delete-upstream, --unscheduled and "+
				"--secrets-namespace need --sync")
	case len(f.sync.parts) > 0 && role:
		return badInput("print them one after the other", "--sync, --loops, --install, --central and --as are roles of their own")
	case f.as.given() && (f.install || f.central), f.install && f.central:
		return badInput("print them one after the other", "--install, --central and --as are roles of their own")
	case len(f.loops) > 0 && (f.as.given() || f.install):
		return badInput("print them one after the other", "--loops, --install and --as are roles of their own")
	}
	return nil
}

func (s *session) printRequested(f requested) error {
	if err := f.contradiction(); err != nil {
		return err
	}
	role := rights.Coordinate()
	switch {
	case len(f.sync.parts) > 0:
		return s.printSync(f.name, f.sync)
	case len(f.kinds) > 0:
		return s.printKinds(f.name, f.kinds)
	case len(f.loops) > 0:
		return s.printLoops(f.name, f.loops, rights.Place{Central: f.central, Namespace: f.namespace})
	case f.as.given():
		return s.printImpersonation(f.name, f.as)
	case f.install:
		role = rights.Install()
	case f.central:
		role = rights.CoordinateCentral()
	}
	return s.printRoles(f.name, []*rbacv1.ClusterRole{role}, nil)
}

// impersonation holds the flags --as and --as-*.
type impersonation struct {
	users, groups, uids, extra, on []string
	any                            bool
}

func (as impersonation) given() bool {
	return as.any || len(as.users)+len(as.groups)+len(as.uids)+len(as.extra)+len(as.on) > 0
}

func (s *session) printImpersonation(name string, as impersonation) error {
	i := rights.Impersonation{Users: as.users, AnyUser: as.any, Groups: as.groups, UIDs: as.uids, Extra: map[string][]string{}}
	for _, pair := range as.extra {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return badInput("write --as-extra KEY=VALUE", "--as-extra %q has no value", pair)
		}
		i.Extra[key] = append(i.Extra[key], value)
	}
	for _, what := range as.on {
		verbs, resource, ok := strings.Cut(what, ":")
		if !ok || verbs == "" || resource == "" || strings.Contains(what, "*") {
			return badInput("write --as-on get,list:couchdbs.eu-west-1.loodse", "--as-on %q does not name verbs and a resource", what)
		}
		gr := schema.ParseGroupResource(resource)
		i.On = append(i.On, rbacv1.PolicyRule{APIGroups: []string{gr.Group}, Resources: []string{gr.Resource}, Verbs: strings.Split(verbs, ",")})
	}
	cluster, roles, err := rights.Impersonate(i)
	if err != nil {
		return badInput("see "+s.program+" rbac --help", "%w", err)
	}
	return s.printRoles(name, []*rbacv1.ClusterRole{cluster}, roles)
}

func (s *session) printKinds(name string, kinds []string) error {
	var types []schema.GroupResource
	for _, kind := range slices.Compact(slices.Sorted(slices.Values(kinds))) {
		of := schema.ParseGroupResource(kind)
		if of.Resource == "" || strings.Contains(kind, "*") || strings.Contains(kind, "/") {
			return badInput("write --kinds databases.operator.example.com", "--kinds %q does not name a type", kind)
		}
		types = append(types, of)
	}
	return s.printRoles(name, []*rbacv1.ClusterRole{rights.Kinds(types...)}, nil)
}

func (s *session) printLoops(name string, loops []string, at rights.Place) error {
	if slices.Contains(loops, "all") {
		loops = rights.LoopNames()
	}
	var cluster []*rbacv1.ClusterRole
	var roles []*rbacv1.Role
	for _, loop := range slices.Compact(slices.Sorted(slices.Values(loops))) {
		c, r, ok := rights.Loop(loop, at)
		if !ok {
			return badInput("the loops are "+strings.Join(slices.Concat(rights.LoopNames(), rights.UpstreamLoopNames()), ", ")+", or all", "there is no loop %q", loop)
		}
		cluster, roles = append(cluster, c...), append(roles, r...)
	}
	return s.printAll(name, cluster, roles)
}

func (s *session) printAll(name string, cluster []*rbacv1.ClusterRole, roles []*rbacv1.Role) error {
	if name != "" && len(cluster)+len(roles) > 1 {
		return badInput("leave --name out", "--name is for one role, and these are %d", len(cluster)+len(roles))
	}
	return s.printRoles(name, cluster, roles)
}

// printRoles prints YAML unless another format was requested.
func (s *session) printRoles(name string, cluster []*rbacv1.ClusterRole, roles []*rbacv1.Role) error {
	var l listing
	for _, role := range cluster {
		if len(role.Rules) == 0 {
			continue
		}
		if name != "" {
			role.Name = name
		}
		if err := l.add(role); err != nil {
			return err
		}
	}
	for _, role := range roles {
		if name != "" {
			role.Name = name
		}
		if err := l.add(role); err != nil {
			return err
		}
	}
	if s.output == formatTable {
		s.output = formatYAML
	}
	l.single = len(l.items) == 1
	return s.print(l)
}

func (l *listing) add(role any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(role)
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
	l.items = append(l.items, item{object: obj})
	return nil
}
