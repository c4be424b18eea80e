// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/atoll-dev/atoll/syncer/join"
)

// The suites on real API servers make tokens, and let clusters join with them.
func TestCluster(t *testing.T) {
	t.Parallel()
	run := func(args ...string) (code int, out, errOut string) {
		var o, e bytes.Buffer
		s := &session{out: &o, errOut: &e, getenv: func(string) string { return "" }, now: time.Now}
		return s.execute(t.Context(), append([]string{"atollctl", "cluster"}, args...)), o.String(), e.String()
	}
	code, out, _ := run("manifests", "--namespace", "tokens")
	require.Equal(t, exitDone, code)
	require.Contains(t, out, "kind: Namespace\nmetadata:\n  name: tokens\n")
	require.Contains(t, out, "name: system:serviceaccounts:tokens\n")

	srv := newServer(func(f func()) { t.Cleanup(f) }, func(err error) { require.NoError(t, err) }, "upstream", false)
	path := filepath.Join(t.TempDir(), "upstream")
	require.NoError(t, writeFile(path, srv.kubeconfig))
	srv = serve(func(f func()) { t.Cleanup(f) }, func(err error) { require.NoError(t, err) }, "upstream", nil, &rbacv1.ClusterRole{Rules: join.TokenRights()})
	allowed := filepath.Join(t.TempDir(), "upstream")
	require.NoError(t, writeFile(allowed, srv.kubeconfig))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"token", "a"}, "no upstream is given"},
		{[]string{"token", "a", "--upstream", path + "x"}, "no such file"},
		{[]string{"token"}, "0 arguments are given, want 1"},
		{[]string{"token", "A", "--upstream", path}, "is not the name of a SyncTarget"},
		{[]string{"token", "a", "--upstream", path, "--lifetime", "1m"}, "Lifetime is 1m0s"},
		{[]string{"token", "a", "--upstream", path}, "remedy: grant create of serviceaccounts and serviceaccounts/token in the namespace atoll-join"},
		{[]string{"token", "a", "--upstream", allowed}, "remedy: apply what atollctl cluster manifests prints"},
		{nil, "atollctl cluster needs a command"},
	} {
		code, _, errOut := run(tt.args...)
		require.Equal(t, exitInput, code, "%v: %s", tt.args, errOut)
		require.Contains(t, errOut, tt.want)
	}
}
