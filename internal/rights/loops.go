// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Place is an API server and its role in an installation.
type Place struct {
	// Central is set for the central plane, and unset for a peer. A central plane that is also a
	// peer grants the roles of both.
	Central bool
	// Namespace is the installation's namespace in a central plane, for Leases and kubeconfigs.
	Namespace string
}

// loops maps the name of a loop to a function that returns the roles that the loop needs in a
// place.
var loops = map[string]func(Place) ([]*rbacv1.ClusterRole, []*rbacv1.Role){
	"fanout": func(p Place) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		return either(p, Coordinate(), CoordinateCentral()), nil
	},
	"peers": func(p Place) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		return either(p, Peers(), PeersCentral()), inside(p, Kubeconfigs(p.Namespace))
	},
	"claims": func(p Place) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		return either(p, Claims(), nil), inside(p, bound(ClaimsCentral(), p.Namespace))
	},
	"accounts": func(p Place) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		return either(p, Accounts(), AccountsCentral()), nil
	},
	"catalog": func(p Place) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		r := Publish()
		if !p.Central {
			r.Rules = append(r.Rules, kubeSystem()) // for the Ring of a Catalog's peers
		}
		return []*rbacv1.ClusterRole{r}, nil
	},
	"events": func(Place) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		return []*rbacv1.ClusterRole{Events()}, nil
	},
	"serviceclusters": func(p Place) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		r := ServiceClusters()
		r.Rules = append(r.Rules, kubeSystem()) // for the Ring of the Controller's peers
		return either(p, r, nil), nil
	},
	"shards": func(p Place) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		return nil, inside(p, Shards(p.Namespace))
	},
}

// upstreamLoops maps the name of a loop to a function that returns the role that the loop needs in
// an upstream of clusters.
var upstreamLoops = map[string]func() *rbacv1.ClusterRole{
	"clusterdaemonsets": ClusterDaemonSets,
	"declarations":      Declarations,
	"placement":         func() *rbacv1.ClusterRole { return Placement() },
}

// LoopNames returns the names of the loops of a central plane and its peers.
func LoopNames() []string { return slices.Sorted(maps.Keys(loops)) }

// UpstreamLoopNames returns the names of the loops of an upstream of clusters.
func UpstreamLoopNames() []string { return slices.Sorted(maps.Keys(upstreamLoops)) }

// Loop returns the least roles that a loop needs in a place. "accounts" also needs the roles of
// "fanout"; the roles of every other loop suffice alone. Loops of an upstream need the same roles
// in any place. ok is false for an unknown name.
func Loop(name string, p Place) (cluster []*rbacv1.ClusterRole, namespaced []*rbacv1.Role, ok bool) {
	if of, ok := upstreamLoops[name]; ok {
		return []*rbacv1.ClusterRole{of()}, nil, true
	}
	of, ok := loops[name]
	if !ok {
		return nil, nil, false
	}
	cluster, namespaced = of(p)
	return cluster, namespaced, true
}

// Events returns the least ClusterRole for running an events.Recorder.
func Events() *rbacv1.ClusterRole {
	return role("atoll-events", rule(schema.GroupResource{Resource: "events"}, "create", "patch"))
}

// Shards returns the least Role for a member of shard.Members, whose Leases are in namespace.
func Shards(namespace string) *rbacv1.Role {
	return bound(role("atoll-shards",
		rule(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "create", "delete", "get", "list", "patch", "watch"),
	), namespace)
}

func either(p Place, peer, central *rbacv1.ClusterRole) []*rbacv1.ClusterRole {
	r := peer
	if p.Central {
		r = central
	}
	if r == nil {
		return nil
	}
	return []*rbacv1.ClusterRole{r}
}

func inside(p Place, r *rbacv1.Role) []*rbacv1.Role {
	if !p.Central {
		return nil
	}
	return []*rbacv1.Role{r}
}

// bound returns a ClusterRole as a Role in one namespace.
func bound(r *rbacv1.ClusterRole, namespace string) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Name: r.Name, Namespace: namespace},
		Rules:      r.Rules,
	}
}
