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

// Ring is a set of planes with the CRDs and PeerSets, and the program that coordinates them.
type Ring struct {
	Planes []*plane.Plane

	program Program
	dir     string
	admin   map[string]string // by plane: path of the administrator's kubeconfig
	least   map[string]string // by plane: path of a kubeconfig with the least rights
	clients map[string]dynamic.Interface
}

// New builds atollctl and makes the planes a ring: it installs the CRDs, grants the rights of a
// coordinator, and runs "atollctl peer init" over the first n planes. The other planes get the CRDs
// and rights, but belong to no ring yet.
func New(t *testing.T, planes []*plane.Plane, n int) *Ring {
	t.Helper()
	return NewBy(t, Present(t), planes, n)
}

// NewBy does the same as New with an existing program, which installs its own CRDs and PeerSets.
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

// By returns the same ring with another program. The shells of the two rings use the same log
// files.
func (r *Ring) By(program Program) *Ring {
	other := *r
	other.program = program
	return &other
}

// Administrator returns a shell with all rights, over all planes.
func (r *Ring) Administrator() *Shell { return r.shell("administrator", r.Planes, r.admin) }

// Shell returns a shell that uses the log with the given name, over the given planes. Without
// planes it is over all planes of the ring.
func (r *Ring) Shell(log string, planes ...*plane.Plane) *Shell {
	if planes == nil {
		planes = r.Planes
	}
	return r.shell(log, planes, r.least)
}

// Sharing returns a shell over the given planes. All such shells share the log in the central
// plane, and use it with the rights of the central plane's administrator.
func (r *Ring) Sharing(central *plane.Plane, planes ...*plane.Plane) *Shell {
	s := r.shell("", planes, r.least)
	s.flags = append(s.flags[2:], "--log", "kube:"+r.admin[central.Name()])
	return s
}

// Kubeconfig returns the path of the kubeconfig of a plane's administrator.
func (r *Ring) Kubeconfig(p *plane.Plane) string { return r.admin[p.Name()] }

// ShellAs returns the same as Shell over all planes, with another kubeconfig for one plane: change
// edits the usual kubeconfig.
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

// ShellTo returns a shell whose peers have the names in leads. The kubeconfig of each peer leads to
// the plane in leads, whatever the name of the plane.
func (r *Ring) ShellTo(log string, leads map[string]*plane.Plane) *Shell {
	s := r.shell(log, nil, nil)
	for _, name := range slices.Sorted(maps.Keys(leads)) {
		s.flags = append(s.flags, "--kubeconfig", name+"="+r.least[leads[name].Name()])
	}
	return s
}

func (r *Ring) shell(log string, planes []*plane.Plane, kubeconfigs map[string]string) *Shell {
	// The default timeout suits a person at a terminal; on a busy test machine commands take
	// longer.
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

// Count returns how often a suite repeats its work: the number in the environment variable, or
// usual if the variable is empty.
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
