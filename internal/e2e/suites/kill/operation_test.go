// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kill_test

import (
	"fmt"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
)

// subject is the object of an operation.
type subject struct{ kind, name string }

const (
	cluster = "servicecluster"
	account = "account"
)

// state is the state of a subject in all planes; the zero value means that it does not exist.
type state struct {
	target string // of a ServiceCluster: the plane of its primary
	role   string // of an Account
}

// operation is one command with its expected result.
type operation struct {
	subject
	args []string
	// on gets the state of the subject before the operation. It returns the state after an
	// operation that is not killed, and the exit code of the operation.
	on func(state) (state, int)
}

// operation returns a random operation.
func (k *killer) operation() operation {
	name := fmt.Sprintf("db-%d", k.random.IntN(4))
	// Planes without controllers keep the namespace of a removed Account for ever, so the next
	// Account gets another name.
	tenant := subject{account, fmt.Sprintf("%s-tenant-%d", k.acme, k.tenant)}
	switch k.random.IntN(8) {
	case 0, 1, 2:
		target := k.ring.Planes[k.random.IntN(len(k.ring.Planes))].Name()
		return operation{
			subject{cluster, name},
			[]string{cluster, "add", name, "-n", k.acme, "--target", target, "-f", k.cluster(name)},
			func(s state) (state, int) {
				if s == (state{}) {
					return state{target: target}, ctltest.Done
				}
				return s, ctltest.Conflict
			},
		}
	case 3, 4:
		return operation{subject{cluster, name}, []string{cluster, "remove", name, "-n", k.acme}, removed}
	case 5:
		return operation{tenant, []string{account, "add", "-f", k.account(tenant.name, "Tenant")}, func(s state) (state, int) {
			if s == (state{}) || s.role == "Tenant" {
				return state{role: "Tenant"}, ctltest.Done
			}
			return s, ctltest.Conflict
		}}
	case 6:
		role := []string{"Tenant", "Provider"}[k.random.IntN(2)]
		return operation{tenant, []string{account, "update", "-f", k.account(tenant.name, role)}, func(s state) (state, int) {
			if s == (state{}) {
				return s, ctltest.Input // the Account does not exist
			}
			return state{role: role}, ctltest.Done
		}}
	default:
		k.tenant++
		return operation{tenant, []string{account, "remove", tenant.name}, removed}
	}
}

func removed(s state) (state, int) {
	if s == (state{}) {
		return s, ctltest.Failed
	}
	return state{}, ctltest.Done
}

// look reads the state of all subjects, and requires that the planes agree.
func (k *killer) look() map[subject]state {
	k.t.Helper()
	seen := map[subject]state{}
	clusters, accounts := map[string][]ctltest.Object{}, map[string][]ctltest.Object{}
	for _, p := range k.ring.Planes {
		objects, err := k.ring.Objects(k.t.Context(), p.Name(), ctltest.ServiceClusters, k.acme)
		require.NoError(k.t, err)
		for name, o := range objects {
			clusters[name] = append(clusters[name], o)
		}
		objects, err = k.ring.Objects(k.t.Context(), p.Name(), ctltest.Accounts, "")
		require.NoError(k.t, err)
		for name, o := range objects {
			accounts[name] = append(accounts[name], o)
		}
	}
	for name, objects := range clusters {
		require.Len(k.t, objects, len(k.ring.Planes), "%s is not in every plane: %v", name, objects)
		var owner ctltest.Object
		for _, o := range objects {
			if o.Owner() {
				require.Empty(k.t, owner.UID, "two owners: %v", objects)
				owner = o
			}
		}
		require.Equal(k.t, "Configured", owner.Stage, "%v", objects)
		require.Equal(k.t, owner.Target, owner.Plane, "%v", objects)
		for _, o := range objects {
			require.True(k.t, o == owner || o.Role == "Secondary" && o.Stage == "Reserved" && o.Of == owner.UID, "%v", objects)
		}
		seen[subject{cluster, name}] = state{target: owner.Target}
	}
	for name, objects := range accounts {
		require.Len(k.t, objects, len(k.ring.Planes), "%s is not in every plane: %v", name, objects)
		primaries, roles := 0, map[string]bool{}
		for _, o := range objects {
			require.Equal(k.t, "Active", o.Stage, "%v", objects)
			if o.Owner() {
				primaries++
			}
			role, _, err := unstructured.NestedStringSlice(o.Raw.Object, "spec", "roles")
			require.NoError(k.t, err)
			roles[role[0]] = true
			seen[subject{account, name}] = state{role: role[0]}
		}
		require.Equal(k.t, 1, primaries, "%v", objects)
		require.Len(k.t, roles, 1, "the planes do not agree on %s", name)
	}
	return seen
}

func (k *killer) account(name, role string) string {
	return k.ring.File(k.t, fmt.Sprintf("apiVersion: catalog.kubecarrier.io/v1alpha1\nkind: Account\nmetadata:\n  name: %s\nspec:\n  roles: [%s]\n", name, role))
}

func (k *killer) cluster(name string) string {
	return k.ring.File(k.t, fmt.Sprintf("apiVersion: kubecarrier.io/v1alpha1\nkind: ServiceCluster\nmetadata:\n  namespace: %s\n  name: %s\nspec:\n  kubeconfigSecret:\n    name: %s\n", k.acme, name, name))
}
