// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
)

const (
	europe = "/regions/eu-west-1.loodse"
	all    = "/regions/*"
)

// TestGateway runs two gateways with the least rights. Callers use them by kubectl with a client certificate and with a
// token that the central plane reviews. Then the central plane is killed, and one gateway is restarted without it.
func TestGateway(t *testing.T) {
	w := newWorld(t)
	folder := t.TempDir()
	a, b := w.start(folder), w.start(t.TempDir())
	alice := w.alice()
	deployer := caller{[]string{"--token=" + w.token(audience)}}
	for _, p := range w.peers {
		planetest.Apply(t, p, "{apiVersion: v1, kind: ConfigMap, metadata: {name: greeting, namespace: default}}")
	}

	for _, r := range []*replica{a, b} {
		r.await(alice, all, "greeting@us-east-1.loodse", "get", "configmaps", "-n", "default")
		r.await(alice, europe, "greeting", "get", "configmaps", "-n", "default")
		out, err := r.kubectl(alice, europe, "create", "configmap", "mine", "-n", "default")
		require.Error(t, err)
		require.Contains(t, out, `User "alice" cannot create resource "configmaps"`, "the region decides, and system:masters was left out")
		out, err = r.kubectl(alice, europe, "get", "secrets", "-A", "--as=admin")
		require.Error(t, err)
		require.Contains(t, out, "impersonation is not possible here")
	}
	out, err := a.kubectl(deployer, europe, "create", "configmap", "deployed", "-n", "default")
	require.NoError(t, err, out)
	b.await(alice, all, "deployed@eu-west-1.loodse", "get", "configmaps", "-n", "default")
	requirePage(t, b, deployer)
	for name, token := range map[string]string{"another audience": w.token("https://another"), "no token": "x"} {
		out, err := a.kubectl(caller{[]string{"--token=" + token}}, europe, "get", "configmaps", "-n", "default")
		require.Error(t, err, name)
		require.Contains(t, out, "You must be logged in to the server", name)
	}

	require.NoError(t, w.central.Kill(t.Context()))
	a.await(alice, all, "greeting@us-east-1.loodse", "get", "configmaps", "-n", "default")
	planetest.Eventually(t, soon, "the token cannot be reviewed", func(context.Context) error {
		out, err := a.kubectl(deployer, europe, "get", "configmap", "deployed", "-n", "default")
		if err == nil || !strings.Contains(out, "who makes the request cannot be checked at present") {
			return errors.New(out)
		}
		return nil
	})
	a.Stop()
	w.certify()
	a = w.start(folder)
	_, text := process.Probe(t.Context(), a.health, "/readyz")
	require.Contains(t, text, "[!]source: cannot be read")
	a.await(alice, all, "greeting@us-east-1.loodse", "get", "configmaps", "-n", "default")
	b.await(alice, all, "greeting@us-east-1.loodse", "get", "configmaps", "-n", "default") // with the new certificate too

	require.NoError(t, w.central.Restart(t.Context()))
	a.await(deployer, europe, "deployed", "get", "configmap", "deployed", "-n", "default")
	planetest.Eventually(t, soon, "the gateway follows the central plane again", func(ctx context.Context) error {
		if _, text := process.Probe(ctx, a.health, "/readyz"); strings.Contains(text, "[!]") {
			return errors.New(text)
		}
		return nil
	})
	for _, r := range []*replica{a, b} {
		r.Stop()
		require.NotContains(t, r.Log.String(), "refuses the gateway itself")
	}
	requireAudited(t, filepath.Join(folder, "audit.log"))
}

// await waits until kubectl prints want.
func (r *replica) await(c caller, path, want string, args ...string) {
	r.world.t.Helper()
	planetest.Eventually(r.world.t, soon, "kubectl "+strings.Join(args, " "), func(context.Context) error {
		out, err := r.kubectl(c, path, args...)
		if err != nil || !strings.Contains(out, want) {
			return errors.New(out)
		}
		return nil
	})
}

// requireAudited requires an event of the created object, as the ServiceAccount that created it and as whom it acted.
func requireAudited(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	found := false
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e auditv1.Event
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		if e.Verb == "create" && e.ResponseStatus.Code == 201 {
			found = true
			require.Equal(t, "system:serviceaccount:ci:deployer", e.User.Username)
			require.Equal(t, "hub:deployer", e.ImpersonatedUser.Username)
			require.Equal(t, "eu-west-1.loodse", e.Annotations["gateway.atoll.dev/region"])
		}
	}
	require.NoError(t, lines.Err())
	require.True(t, found)
}
