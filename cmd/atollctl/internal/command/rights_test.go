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

// The servers grant exactly the printed rights, so the success of all commands shows that the
// printed rights suffice. The test also fails if no command uses a printed right.
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
	// API servers check these two rights when an apply creates a CRD, or an upgrade replaces it.
	// This test does neither.
	types := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	delete(printed, right{"create", types})
	delete(printed, right{"update", types})
	// A Role is patched only after a foreign edit.
	delete(printed, right{"patch", schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}})
	// Commands need the rights that they grant in Roles, because an API server lets a client grant
	// only its own rights. No command has to use them.
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
