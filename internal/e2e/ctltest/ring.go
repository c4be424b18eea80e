// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ctltest

import (
	"maps"
	"os"
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

	program Program
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
	return NewBy(t, Present(t), planes, n)
}

// NewBy is New with the CRDs and PeerSets of a program that is there already.
func NewBy(t *testing.T, program Program, planes []*plane.Plane, n int) *Ring {
	t.Helper()
	r := &Ring{
		Planes: planes, program: program, dir: t.TempDir(),
		admin: map[string]string{}, least: map[string]string{}, clients: map[string]dynamic.Interface{},
	}
	role, err := yaml.Marshal(rights.Coordinate())
	require.NoError(t, err)
	for _, p := range planes {
		r.clients[p.Name()] = planetest.Dynamic(t, p.Config())
		r.admin[p.Name()] = planetest.WriteKubeconfig(t, p.Name()+"-admin", p.Kubeconfig())
	}
	r.Administrator().Succeed(t, "install-crds")
	for _, p := range planes {
		kubeconfig, err := p.RunAs(t.Context(), role)
		require.NoError(t, err)
		r.least[p.Name()] = planetest.WriteKubeconfig(t, p.Name(), kubeconfig)
	}
	r.Shell("init", planes[:n]...).Succeed(t, "peer", "init")
	return r
}

// By is the same ring with another program, whose shells have the same logs.
func (r *Ring) By(program Program) *Ring {
	other := *r
	other.program = program
	return &other
}

// Administrator runs the program with all rights, over all planes.
func (r *Ring) Administrator() *Shell { return r.shell("administrator", r.Planes, r.admin) }

// Shell runs the program with the log of that name, over the planes given or
// else over all.
func (r *Ring) Shell(log string, planes ...*plane.Plane) *Shell {
	if planes == nil {
		planes = r.Planes
	}
	return r.shell(log, planes, r.least)
}

// Sharing runs the program over the planes given with the log that all programs share
// in a plane, as that plane's administrator.
func (r *Ring) Sharing(central *plane.Plane, planes ...*plane.Plane) *Shell {
	s := r.shell("", planes, r.least)
	s.flags = append(s.flags[2:], "--log", "kube:"+r.admin[central.Name()])
	return s
}

// Kubeconfig is the path of the kubeconfig of a plane's administrator.
func (r *Ring) Kubeconfig(p *plane.Plane) string { return r.admin[p.Name()] }

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
	s := &Shell{binary: r.program.path, flags: append([]string{"--wal", filepath.Join(r.dir, log+".db"), "--timeout", "5m"}, r.program.flags...)}
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
