// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kill_test kills coordinators at random moments.
package kill_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

const kills = 50

var (
	serviceClusters = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}
	accounts        = schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
)

// TestKill kills the command at random moments of its operations. After each
// kill the next process recovers from the log, an audit finds every invariant
// in force, and what was acknowledged before is still there.
func TestKill(t *testing.T) {
	s := newShell(t, planetest.Shared(t, 3))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	acme := fmt.Sprintf("acme-%x", seed)
	s.succeed("account", "add", "-f", s.account(acme, "Tenant"))
	usual := s.timed("servicecluster", "add", "warm-up", "-n", acme, "--target", "us-east", "-f", s.cluster(acme, "warm-up"))
	s.succeed("servicecluster", "remove", "warm-up", "-n", acme)

	killed, acknowledged := 0, map[string]bool{} // by name: whether it is known to be there
	for i := 0; killed < kills; i++ {
		require.Less(t, i, 20*kills, "too few operations could be killed")
		name := fmt.Sprintf("db-%d", random.IntN(4))
		args, object := s.operation(random, acme, name)
		ended, code := s.kill(time.Duration(random.Int64N(int64(usual*5/4))), args...)
		if !ended {
			killed++
			delete(acknowledged, object)
		} else if code == 0 {
			acknowledged[object] = args[1] != "remove"
		}
		s.succeed("wal", "recover")
		s.succeed("audit")
		for object, there := range acknowledged {
			s.requireEverywhere(acme, object, there)
		}
	}
	t.Logf("%d kills", killed)
}

// shell runs atollctl against planes with the least rights.
type shell struct {
	t      *testing.T
	binary string
	flags  []string
	planes []*plane.Plane
	dir    string
}

func newShell(t *testing.T, planes []*plane.Plane) *shell {
	t.Helper()
	s := &shell{t: t, planes: planes, dir: t.TempDir(), binary: filepath.Join(t.TempDir(), "atollctl")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.binary, ".")
	build.Dir = filepath.Join("..", "..", "..", "..", "examples", "atollctl")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	role, err := yaml.Marshal(rights.Coordinate())
	require.NoError(t, err)
	admin := &shell{t: t, planes: planes, dir: s.dir, binary: s.binary}
	for _, p := range planes {
		admin.flags = append(admin.flags, "--kubeconfig", p.Name()+"="+planetest.WriteKubeconfig(t, p.Name()+"-admin", p.Kubeconfig()))
	}
	admin.succeed("install-crds")
	for _, p := range planes {
		kubeconfig, err := p.RunAs(t.Context(), role)
		require.NoError(t, err)
		s.flags = append(s.flags, "--kubeconfig", p.Name()+"="+planetest.WriteKubeconfig(t, p.Name(), kubeconfig))
	}
	s.flags = append(s.flags, "--wal", filepath.Join(s.dir, "operations.db"), "--timeout", "60s")
	s.succeed("peer", "init")
	return s
}

func (s *shell) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, s.binary, append(args, s.flags...)...)
}

func (s *shell) succeed(args ...string) {
	s.t.Helper()
	out, err := s.command(s.t.Context(), args...).CombinedOutput()
	require.NoError(s.t, err, "atollctl %s: %s", strings.Join(args, " "), out)
}

// timed runs a command and says how long it took.
func (s *shell) timed(args ...string) time.Duration {
	s.t.Helper()
	start := time.Now()
	s.succeed(args...)
	return time.Since(start)
}

// kill runs a command and kills it after some time. It says whether the command
// had ended before, and how.
func (s *shell) kill(after time.Duration, args ...string) (ended bool, code int) {
	s.t.Helper()
	cmd := s.command(s.t.Context(), args...)
	require.NoError(s.t, cmd.Start())
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	if err == nil {
		return true, 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(s.t, ok, "%v", err)
	return exit.Exited(), exit.ExitCode()
}

// operation chooses an operation and says on which object. An object is written
// as its kind and name.
func (s *shell) operation(random *rand.Rand, acme, name string) (args []string, object string) {
	tenant := acme + "-" + name
	switch random.IntN(5) {
	case 0, 1:
		target := s.planes[random.IntN(len(s.planes))].Name()
		return []string{"servicecluster", "add", name, "-n", acme, "--target", target, "-f", s.cluster(acme, name)}, "servicecluster " + name
	case 2:
		return []string{"servicecluster", "remove", name, "-n", acme}, "servicecluster " + name
	case 3:
		return []string{"account", "add", "-f", s.account(tenant, "Tenant")}, "account " + tenant
	default:
		roles := []string{"Tenant", "Provider"}
		return []string{"account", "update", "-f", s.account(tenant, roles[random.IntN(2)])}, "account " + tenant
	}
}

func (s *shell) account(name, role string) string {
	return s.file(fmt.Sprintf("apiVersion: catalog.kubecarrier.io/v1alpha1\nkind: Account\nmetadata:\n  name: %s\nspec:\n  roles: [%s]\n", name, role))
}

func (s *shell) cluster(namespace, name string) string {
	return s.file(fmt.Sprintf("apiVersion: kubecarrier.io/v1alpha1\nkind: ServiceCluster\nmetadata:\n  namespace: %s\n  name: %s\nspec:\n  kubeconfigSecret:\n    name: %s\n", namespace, name, name))
}

func (s *shell) file(text string) string {
	f, err := os.CreateTemp(s.dir, "*.yaml")
	require.NoError(s.t, err)
	_, err = f.WriteString(text)
	require.NoError(s.t, err)
	require.NoError(s.t, f.Close())
	return f.Name()
}

// requireEverywhere reads every plane as the administrator.
func (s *shell) requireEverywhere(acme, object string, there bool) {
	s.t.Helper()
	kind, name, _ := strings.Cut(object, " ")
	for _, p := range s.planes {
		client := planetest.Dynamic(s.t, p.Config())
		var (
			obj *unstructured.Unstructured
			err error
		)
		if kind == "account" {
			obj, err = client.Resource(accounts).Get(s.t.Context(), name, metav1.GetOptions{})
		} else {
			obj, err = client.Resource(serviceClusters).Namespace(acme).Get(s.t.Context(), name, metav1.GetOptions{})
		}
		if there {
			require.NoError(s.t, err, "%s was acknowledged and is not in %s", object, p.Name())
			require.NotNil(s.t, obj)
		} else {
			require.True(s.t, apierrors.IsNotFound(err), "%s was removed and is in %s", object, p.Name())
		}
	}
}
