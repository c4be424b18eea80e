// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ctltest

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
)

// Ring is planes with the CRDs and PeerSets, and the program that works on them.
type Ring struct {
	Planes []*plane.Plane

	binary  string
	dir     string
	admin   map[string]string // by plane: the path of its administrator's kubeconfig
	least   map[string]string // by plane: of one with the least rights
	clients map[string]dynamic.Interface
}

// New builds atollctl and makes the planes a ring: it installs the CRDs, grants
// what a coordinator must be allowed, and runs "atollctl peer init" over the
// first n of the planes. The others are prepared but belong to no ring yet.
func New(t *testing.T, planes []*plane.Plane, n int) *Ring {
	t.Helper()
	r := &Ring{
		Planes: planes, dir: t.TempDir(),
		admin: map[string]string{}, least: map[string]string{}, clients: map[string]dynamic.Interface{},
	}
	r.binary = filepath.Join(r.dir, "atollctl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", r.binary, ".")
	build.Dir = filepath.Join("..", "..", "..", "..", "examples", "atollctl")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	role, err := yaml.Marshal(rights.Coordinate())
	require.NoError(t, err)
	for _, p := range planes {
		r.clients[p.Name()] = planetest.Dynamic(t, p.Config())
		r.admin[p.Name()] = planetest.WriteKubeconfig(t, p.Name()+"-admin", p.Kubeconfig())
	}
	administrator := r.shell("administrator", planes, r.admin)
	administrator.Succeed(t, "install-crds")
	for _, p := range planes {
		kubeconfig, err := p.RunAs(t.Context(), role)
		require.NoError(t, err)
		r.least[p.Name()] = planetest.WriteKubeconfig(t, p.Name(), kubeconfig)
	}
	r.Shell("init", planes[:n]...).Succeed(t, "peer", "init")
	return r
}

// Shell runs the program with the log of that name, over the planes given or
// else over all.
func (r *Ring) Shell(log string, planes ...*plane.Plane) *Shell {
	if planes == nil {
		planes = r.Planes
	}
	return r.shell(log, planes, r.least)
}

// ShellAs is Shell with another kubeconfig for one of the planes: change makes it from the usual one.
func (r *Ring) ShellAs(t *testing.T, log, plane string, change func(*api.Cluster, *api.AuthInfo)) *Shell {
	t.Helper()
	config, err := clientcmd.LoadFromFile(r.least[plane])
	require.NoError(t, err)
	present := config.Contexts[config.CurrentContext]
	change(config.Clusters[present.Cluster], config.AuthInfos[present.AuthInfo])
	data, err := clientcmd.Write(*config)
	require.NoError(t, err)
	kubeconfigs := maps.Clone(r.least)
	kubeconfigs[plane] = planetest.WriteKubeconfig(t, plane, data)
	return r.shell(log, r.Planes, kubeconfigs)
}

// ShellTo is Shell over peers whose kubeconfigs lead to the planes given, by name.
func (r *Ring) ShellTo(log string, leads map[string]*plane.Plane) *Shell {
	s := r.shell(log, nil, nil)
	for _, name := range slices.Sorted(maps.Keys(leads)) {
		s.flags = append(s.flags, "--kubeconfig", name+"="+r.least[leads[name].Name()])
	}
	return s
}

func (r *Ring) shell(log string, planes []*plane.Plane, kubeconfigs map[string]string) *Shell {
	// The time of a command is a person's; what is looked at here may share its processors with anything.
	s := &Shell{binary: r.binary, flags: []string{"--wal", filepath.Join(r.dir, log+".db"), "--create-wal", "--timeout", "5m"}}
	for _, p := range planes {
		s.flags = append(s.flags, "--kubeconfig", p.Name()+"="+kubeconfigs[p.Name()])
	}
	return s
}

// File writes a manifest and returns its path.
func (r *Ring) File(t *testing.T, manifest string) string {
	t.Helper()
	f, err := os.CreateTemp(r.dir, "*.yaml")
	require.NoError(t, err)
	_, err = f.WriteString(manifest)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return f.Name()
}

// Count is how often a suite repeats what it does: usual, unless the environment
// variable says otherwise.
func Count(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "%s", variable)
	require.Positive(t, n, "%s", variable)
	return n
}
