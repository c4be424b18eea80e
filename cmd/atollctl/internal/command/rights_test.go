// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/internal/rights"
)

const (
	accountYAML = "apiVersion: catalog.kubecarrier.io/v1alpha1\nkind: Account\nmetadata: {name: acme}\nspec: {roles: [Provider], subjects: [{kind: User, name: alice}]}\n"
	clusterYAML = "apiVersion: kubecarrier.io/v1alpha1\nkind: ServiceCluster\nspec: {kubeconfigSecret: {name: db}}\n"
)

// The servers grant only the rights that "atollctl rbac" and "atollctl rbac --install" print. The
// commands of the test succeed, so these rights suffice for them. Each printed right is used by
// some command, except the rights that the test removes from the list.
func TestRights(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var flags []string
	var servers []*server
	for _, name := range []string{"eu", "us"} {
		s := newServer(func(f func()) { t.Cleanup(f) }, func(err error) { require.NoError(t, err) }, name, false)
		path := filepath.Join(dir, name)
		require.NoError(t, writeFile(path, s.kubeconfig))
		servers = append(servers, s)
		flags = append(flags, "--kubeconfig", name+"="+path)
	}
	flags = append(flags, "--wal", filepath.Join(dir, "operations.db"), "--create-wal")
	run := func(in string, args ...string) {
		t.Helper()
		var out, errOut bytes.Buffer
		s := &session{in: strings.NewReader(in), out: &out, errOut: &errOut, getenv: func(string) string { return "" }, now: time.Now}
		code := s.execute(t.Context(), slices.Concat([]string{"atollctl"}, args, flags))
		require.Equal(t, exitDone, code, "atollctl %s: %s", strings.Join(args, " "), &errOut)
	}
	run("", "install-crds")
	run("", "peer", "init")
	run("", "peers")
	run(accountYAML, "account", "add", "-f", "-", "--target", "eu")
	run(accountYAML+"# again\n", "account", "add", "-f", "-", "--target", "us")
	run(strings.Replace(accountYAML, "Provider", "Tenant", 1), "account", "update", "-f", "-")
	run(strings.NewReplacer("Provider", "Tenant", "alice", "bob").Replace(accountYAML), "account", "update", "-f", "-")
	run(clusterYAML, "sc", "add", "db", "-n", "acme", "--target", "us", "-f", "-")
	run("", "route", "db.acme")
	run("", "sc", "list")
	run("", "account", "list")
	run("", "audit", "--repair")
	run("", "sc", "remove", "db", "-n", "acme")
	run("", "account", "move", "acme", "--to", "us")
	run("", "account", "remove", "acme")
	run("", "peer", "leave", "us")
	run("", "peer", "join", "us")
	run("", "wal", "recover")

	printed, used := map[right]bool{}, map[right]bool{}
	for _, s := range servers {
		for r := range s.used {
			used[r] = true
		}
	}
	for _, r := range granted(rights.Coordinate(), rights.Install()) {
		printed[r] = true
	}
	// A real API server also checks the right to create if an apply creates a CRD. The servers of
	// this test do not. An upgrade that replaces a CRD needs the right to update. This test makes
	// no such upgrade.
	types := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	delete(printed, right{"create", types})
	delete(printed, right{"update", types})
	// A command patches a Role only after another client has edited the Role.
	delete(printed, right{"patch", schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}})
	// An API server lets a client grant only rights that the client has. So commands need the
	// rights that they grant in Roles, even if they do not use these rights themselves.
	for _, rules := range account.DefaultRights() {
		for _, r := range granted(&rbacv1.ClusterRole{Rules: rules}) {
			require.True(t, printed[r])
			if !used[r] {
				delete(printed, r)
			}
		}
	}
	require.Equal(t, printed, used)
}
